import type { Cairn } from "./cairn.ts";

/** How a session ends; then everything is removed that can be. */
export const SESSION_ENDS: Record<string, (cairn: Cairn, id: string) => Promise<void>> = {
  deletion: async (cairn, id) => void (await cairn.ok(cairn.delete(`/v1/sessions/${id}`))),
  expiry: async (cairn, id) => {
    await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 1 }));
    cairn.clock.advance({ seconds: 2 });
    await cairn.runTask("session expiry");
  },
};
