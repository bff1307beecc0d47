/**
 * What an API key may do.
 *
 * @module
 */
export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** `admin` implies the others. */
export function hasScope(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}
