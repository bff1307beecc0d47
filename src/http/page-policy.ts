/**
 * The Content-Security-Policy of a page of ours: it loads its own files and nothing else, and text never becomes markup or script in it.
 *
 * @module
 */

/** @param images - sources of images besides its own files */
export function pagePolicy(images = ""): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self'${images === "" ? "" : ` ${images}`}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
