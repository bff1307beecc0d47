/**
 * One use of a tool: the API, and for whom it is used when the model says nothing of that.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import type { Api } from "./api.ts";

/** User of the tools of a connection. A default, no wall: what may be seen is for the API key to say. */
export interface Identity {
  readonly userId?: string | undefined;
  readonly agentId: string;
  /** Instead of the session of this agent and user. */
  readonly sessionId?: string | undefined;
}

export const AGENT_DEFAULT = "mcp";

const SESSION_DAYS = 30;
export const SESSION_TTL_SECONDS = (SESSION_DAYS * DAY_MS) / 1000;
/** A session with less than this left is prolonged by what is done in it. */
const PROLONGED_BELOW_MS = (SESSION_DAYS * DAY_MS) / 2;

export class ToolContext {
  readonly call: Api;
  readonly identity: Identity;
  readonly #now: () => number;

  constructor(call: Api, identity: Identity, now: () => number) {
    this.call = call;
    this.identity = identity;
    this.#now = now;
  }

  /** Returns the session that the model named, or the one of this identity if there is one; makes none. */
  async findSession(named: string | undefined): Promise<string | undefined> {
    const fixed = named ?? this.identity.sessionId;
    return fixed ?? ((await this.#find())?.["id"] as string | undefined);
  }

  /** Returns the session to change: one is made where there is none, and one that ends soon is prolonged. */
  async openSession(named: string | undefined): Promise<string> {
    const fixed = named ?? this.identity.sessionId;
    if (fixed !== undefined) return fixed;
    const session = (await this.#find()) ?? (await this.#create());
    const id = session["id"] as string;
    const expiresAt = session["ttl_expires_at"] as string | null;
    if (expiresAt !== null && Date.parse(expiresAt) - this.#now() < PROLONGED_BELOW_MS) {
      await this.call("PATCH /v1/sessions/{session_id}", { path: { session_id: id }, body: { ttl_seconds: SESSION_TTL_SECONDS } });
    }
    return id;
  }

  /** Finds what `#create` would return. */
  async #find(): Promise<JsonObject | undefined> {
    const { agentId, userId } = this.identity;
    const query = { external_id: sessionNameOf(this.identity), agent_id: agentId, user_id: userId, exact_user: true };
    const { data } = await this.call("GET /v1/sessions", { query });
    return (data as JsonObject[])[0];
  }

  /** Returns the one that another call has made meanwhile, if so. */
  #create(): Promise<JsonObject> {
    const { agentId, userId } = this.identity;
    const name = { external_id: sessionNameOf(this.identity), if_exists: "return" };
    return this.call("POST /v1/sessions", { body: { agent_id: agentId, user_id: userId, ttl_seconds: SESSION_TTL_SECONDS, ...name } });
  }
}

/** The `external_id` of the session of an agent and user: the same for no other two. */
function sessionNameOf({ agentId, userId = "" }: Identity): string {
  const name = `mcp:${escaped(agentId)}:${escaped(userId)}`;
  return codePointLength(name) <= LIMITS.externalIdLengthMax ? name : `mcp:${Bun.CryptoHasher.hash("sha256", name, "hex")}`;
}

function escaped(name: string): string {
  return name.replaceAll("%", "%25").replaceAll(":", "%3A");
}
