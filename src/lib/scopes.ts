/**
 * Rights of an API key.
 *
 * @module
 */
export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Right that a call needs of its key: a scope, or `any`: that it is one, whatever its scopes; `sign_in`: the key of a link will do too. */
export type Access = Scope | "any" | "sign_in";

/** Checks whether a key may make a call. The key of a link has no scope. */
export function hasAccess(scopes: readonly string[], access: Access): boolean {
  if (access === "sign_in") return true;
  return access === "any" ? scopes.length > 0 : hasScope(scopes, access);
}

/** `admin` implies the others. */
export function hasScope(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}
