/**
 * The process that asks: fills a server and puts load on one.
 *
 * @module
 */
import { obey } from "./child.ts";
import { Connection } from "../../src/cli/bench/load/connection.ts";
import { load } from "../../src/cli/bench/load/load.ts";
import type { Run } from "../../src/cli/bench/load/timing.ts";
import { pick, randomOf } from "../../src/cli/bench/load/texts.ts";
import { OPERATIONS, addMemory, createSession, encodeRequest, filling, type OperationName } from "../../src/cli/bench/load/workload.ts";

export type ClientOrder =
  | { kind: "fill"; port: number; key: string; sessions: number; connections: number }
  /** Answers with the bodies that the requests of one operation get. */
  | { kind: "sample"; port: number; operation: OperationName }
  | { kind: "load"; ports: readonly number[]; operation: OperationName; concurrency: number; seconds: number; adds: boolean }
  /** Stores memories through the API. */
  | { kind: "memories"; port: number; count: number; connections: number };

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
      sessions
        .slice(0, OPERATIONS[operation].sessionsMax)
        .map((id, session) => OPERATIONS[operation].requests(id, session, variant).map((request) => encodeRequest(request, key))),
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

/** Sessions are drawn at random, always the same ones; meanwhile memories are added if `adds`. */
async function loadOf({ ports, operation, concurrency, seconds, adds }: Extract<ClientOrder, { kind: "load" }>): Promise<Run> {
  const requests = requestsOf(operation);
  await using _ = adds ? await addMemories(ports[0]!) : undefined;
  return load(ports, concurrency, seconds, (connection) => {
    const random = randomOf(connection);
    return () => pick(requests, random);
  });
}

async function storeMemories({ port, count, connections }: Extract<ClientOrder, { kind: "memories" }>): Promise<string[]> {
  let next = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = await Connection.open(port);
      for (let i = next++; i < count; i = next++)
        await connection.askFor(encodeRequest(addMemory(sessions[i % sessions.length]!, STORED_FROM + i), key));
      connection.close();
    }),
  );
  return sessions;
}
/** Their texts are no other memories', either. */
const STORED_FROM = 1 << 22;

const ADDS_PER_SECOND = 20;
let added = 0;

/** Adds a memory to some session now and then, until it is disposed of. */
async function addMemories(port: number): Promise<AsyncDisposable> {
  const connection = await Connection.open(port);
  const random = randomOf(added);
  let last: Promise<unknown> = Promise.resolve();
  const add = () => connection.askFor(encodeRequest(addMemory(pick(sessions, random), ADDED_FROM + added++), key));
  const timer = setInterval(() => (last = last.then(add)), 1000 / ADDS_PER_SECOND);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await last;
      connection.close();
    },
  };
}
/** Their texts are no other memories'. */
const ADDED_FROM = 1 << 20;

obey((order: ClientOrder): Promise<ClientResult> => {
  if (order.kind === "fill") return fill(order);
  if (order.kind === "memories") return storeMemories(order);
  return order.kind === "sample" ? sample(order) : loadOf(order);
});
