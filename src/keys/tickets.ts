/**
 * Tickets: each stands for an API key, once, for one path, for a minute. A browser that follows a link sends no header, and a key
 * never stands in a URL, which ends up in histories and logs.
 *
 * They are in memory alone: a restart ends them.
 *
 * @module
 */
import { randomBase62 } from "../lib/base62.ts";
import type { Clock } from "../lib/clock.ts";
import { bare, type KeyId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Reader } from "../storage/access.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import { hasEnded } from "./keys.ts";
import { hashOf, storedKey } from "./stored-key.ts";

/** About 190 bits. */
const TICKET_LENGTH = 32;
const VALID_MS = LIMITS.ticketSeconds * 1000;

interface Ticket {
  readonly keyId: KeyId;
  readonly path: string;
  /** `clock.elapsed()` at its end. */
  readonly endsAt: number;
}

export class Tickets {
  readonly #clock: Clock;
  /** By their hashes, so that looking for one cannot be timed. The oldest comes first. */
  readonly #tickets = new Map<string, Ticket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(keyId: KeyId, path: string): string {
    const now = this.#clock.elapsed();
    for (const [hash, { endsAt }] of this.#tickets) {
      if (endsAt > now && this.#tickets.size < LIMITS.ticketsMax) break;
      this.#tickets.delete(hash);
    }
    const ticket = `tkt_${randomBase62(TICKET_LENGTH)}`;
    this.#tickets.set(hashOf(ticket), { keyId, path, endsAt: now + VALID_MS });
    return ticket;
  }

  /** Uses a ticket up. @returns the key that it stands for, if that is still valid */
  redeem(reader: Reader, presented: string, path: string): ApiKeyRow | undefined {
    const hash = hashOf(presented);
    const ticket = this.#tickets.get(hash);
    if (ticket === undefined || ticket.path !== path) return undefined;
    this.#tickets.delete(hash);
    const row = ticket.endsAt <= this.#clock.elapsed() ? undefined : storedKey(reader, bare(ticket.keyId))?.row;
    return row === undefined || hasEnded(row, reader.now) ? undefined : row;
  }
}
