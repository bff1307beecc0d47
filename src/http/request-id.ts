/**
 * Every request has an id: the client's own if it sent a sane one, else a new one.
 *
 * @module
 */
import { NO_PARTITION, type IdSource } from "../lib/ids.ts";

const SANE = /^[\w.:/+=-]{1,128}$/;

export function requestIdOf(headers: Headers, ids: IdSource): string {
  const sent = headers.get("x-request-id");
  return sent !== null && SANE.test(sent) ? sent : ids.next("req", NO_PARTITION);
}
