/**
 * Rights of the key that is signed in, and whose records it is for. The screens are drawn once that is known.
 *
 * @module
 */
import { api, type ApiKey, type Scope } from "./api.ts";
import { useQuery } from "./query.ts";

export function useOwnKey() {
  return useQuery({ queryKey: ["me"], staleTime: Infinity, queryFn: ({ signal }) => api.me(signal) });
}

export function useMe(): ApiKey | undefined {
  return useOwnKey().data;
}

/** Checks whether actions that need a scope are shown. `admin` implies the others. */
export function useCan(scope: Scope): boolean {
  const me = useMe();
  return me !== undefined && hasScope(me, scope);
}

export function hasScope({ scopes }: ApiKey, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}

/** Rights by the scopes of a key, to follow "may". */
export function rightsOf({ scopes }: ApiKey): string {
  return scopes.includes("admin") ? "do everything" : scopes.toSorted().join(" and ");
}

/** The user and the agent whose records are all that a key sees; null for a key that sees those of all. */
export function boundTo({ user_id: user, agent_id: agent }: ApiKey): string | null {
  const names = [agent !== null && `agent ${agent}`, user !== null && `user ${user}`].filter((name) => name !== false);
  return names.length === 0 ? null : names.join(" and ");
}
