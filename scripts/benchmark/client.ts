/**
 * The process that asks: fills a server and puts load on one.
 *
 * @module
 */
import { obey } from "./child.ts";
import { Connection } from "./connection.ts";
import { load } from "./load.ts";
import type { Run } from "./timing.ts";
import { OPERATIONS, createSession, encodeRequest, filling, type OperationName } from "./workload.ts";

export type ClientOrder =
  | { kind: "fill"; port: number; key: string; sessions: number; connections: number }
  /** Answers with the bodies that the requests of one operation get. */
  | { kind: "sample"; port: number; operation: OperationName }
  | { kind: "load"; port: number; operation: OperationName; concurrency: number; seconds: number };

export type ClientResult = Run | string[];

let key = "";
const sessions: string[] = [];
/** For each operation every session's requests, twice with other contents. */
const prepared = new Map<OperationName, Uint8Array[][]>();

async function fill(order: Extract<ClientOrder, { kind: "fill" }>): Promise<string[]> {
  key = order.key;
  let next = 0;
  await Promise.all(
    Array.from({ length: order.connections }, async () => {
      const connection = await Connection.open(order.port);
      while (next < order.sessions) {
        const session = next++;
        const { id } = JSON.parse(await connection.askFor(encodeRequest(createSession(session), key))) as { id: string };
        sessions[session] = id;
        for (const request of filling(id, session)) await connection.askFor(encodeRequest(request, key));
      }
      connection.close();
    }),
  );
  return sessions;
}

function requestsOf(operation: OperationName): Uint8Array[][] {
  let requests = prepared.get(operation);
  if (requests === undefined) {
    requests = [0, 1].flatMap((variant) =>
      sessions.map((id, session) => OPERATIONS[operation].requests(id, session, variant).map((request) => encodeRequest(request, key))),
    );
    prepared.clear();
    prepared.set(operation, requests);
  }
  return requests;
}

async function sample({ port, operation }: Extract<ClientOrder, { kind: "sample" }>): Promise<string[]> {
  const connection = await Connection.open(port);
  const bodies: string[] = [];
  for (const request of requestsOf(operation)[0] ?? []) bodies.push(await connection.askFor(request));
  connection.close();
  return bodies;
}

async function loadOf({ port, operation, concurrency, seconds }: Extract<ClientOrder, { kind: "load" }>): Promise<Run> {
  const requests = requestsOf(operation);
  return load(port, concurrency, seconds, (connection) => {
    let at = Math.floor((connection * requests.length) / concurrency) - 1;
    return () => requests[(at = (at + 1) % requests.length)]!;
  });
}

obey((order: ClientOrder) => (order.kind === "fill" ? fill(order) : order.kind === "sample" ? sample(order) : loadOf(order)));
