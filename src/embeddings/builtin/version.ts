/**
 * Generation of the vectors and words of the built-in provider.
 *
 * @module
 */
import { TERMS_VERSION } from "../words/terms.ts";
import { WEIGHTS_VERSION } from "./weights.ts";

/** Changes whenever the vector or the terms of the same text would change, so that stored ones are replaced. */
export const BUILTIN_VERSION = `builtin-3-${WEIGHTS_VERSION}-${TERMS_VERSION}`;
