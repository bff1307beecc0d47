/**
 * What holds in every test: a work of the store is run twice, and has to write the same each time.
 *
 * @module
 */
import { Store } from "../../src/storage/store.ts";

Store.runsWorksTwice = true;
