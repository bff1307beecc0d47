/**
 * What holds in every test: a work of the store is run twice, and has to write the same each time.
 *
 * @module
 */
import { checks } from "../../src/storage/callback.ts";

checks.runsTwice = true;
