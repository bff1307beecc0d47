/**
 * What the key of who is signed in may do. Nothing, until that is known.
 *
 * @module
 */
import { api, type ApiKey, type Scope } from "./api.ts";
import { useQuery } from "./query.ts";

export function useMe(): ApiKey | undefined {
  return useQuery({ queryKey: ["me"], staleTime: Infinity, queryFn: ({ signal }) => api.me(signal) }).data;
}

/** Whether actions that need a scope are shown. `admin` implies the others. */
export function useCan(scope: Scope): boolean {
  const scopes = useMe()?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}
