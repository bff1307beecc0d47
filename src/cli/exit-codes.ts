/**
 * Exit codes that say more than success, failure and wrong usage.
 *
 * @module
 */

/** EX_IOERR of sysexits.h: the store cannot be used any more in this process, and a new one may. */
export const STORE_FAILED_EXIT_CODE = 74;
