/**
 * Version of this Cairn.
 *
 * The version is package.json's. The rest is known only to the executable, where `scripts/build.ts` writes it in as constants;
 * from source there is no commit, because a working tree may differ from any.
 *
 * @module
 */
import { version as packageVersion } from "../../package.json";

declare const CAIRN_COMMIT: string | null | undefined;
declare const CAIRN_TARGET: string | undefined;
declare const CAIRN_RELEASES: string | null | undefined;

/** The version in package.json, as in `0.1.0`. */
export const version: string = packageVersion;

/** The first 12 digits of the git commit the executable was built from; null from source, or built outside git. */
export const commit: string | null = typeof CAIRN_COMMIT === "string" ? CAIRN_COMMIT : null;

/** Target of the executable, as in `linux-arm64-musl`; null from source. */
export const target: string | null = typeof CAIRN_TARGET === "string" ? CAIRN_TARGET : null;

/** The address below which releases are published; null in an executable that is not of a release. */
export const releases: string | null = typeof CAIRN_RELEASES === "string" ? CAIRN_RELEASES : null;
