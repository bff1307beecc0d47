/**
 * Which Cairn this is.
 *
 * The version is package.json's. The commit is known only to the executable, where `scripts/build.ts` writes it in as a
 * constant; from source there is none, because a working tree may differ from any commit.
 *
 * @module
 */
import { version as packageVersion } from "../../package.json";

declare const CAIRN_COMMIT: string | null | undefined;

/** The version in package.json, as in `0.1.0`. */
export const version: string = packageVersion;

/** The first 12 digits of the git commit the executable was built from; null from source, or built outside git. */
export const commit: string | null = typeof CAIRN_COMMIT === "string" ? CAIRN_COMMIT : null;
