/**
 * An endpoint: a line of the API's table. Its schemas validate what comes in and are its documentation.
 *
 * @module
 */
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { WireCode } from "../lib/errors.ts";
import type { JsonText } from "../lib/json.ts";
import type { Scope } from "../lib/scopes.ts";
import type { Keep } from "./idempotency.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Who calls, as the key that was presented says. */
export interface ApiCaller {
  readonly actor: string;
  readonly keyId: `key_${string}`;
  readonly scopes: readonly string[];
  readonly retentionDays: number;
  readonly requestId: string;
  readonly startedAt: number;
  readonly keep?: Keep;
}

/** The parameters of a path by name: `/v1/sessions/{session_id}/turns/{turn_id}` gives `{ session_id: string; turn_id: string }`. */
type PathParameters<Path extends string> = Record<ParameterName<Path>, string>;
type ParameterName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParameterName<Rest> : never;

export interface Call<Params, Query, Body> {
  params: Params;
  query: Query;
  body: Body;
  caller: ApiCaller;
}

export interface Example {
  request?: unknown;
  response: unknown;
}

export interface Endpoint {
  method: Method;
  /** As in the specification: `/v1/sessions/{session_id}`. */
  path: string;
  tag: string;
  scope: Scope;
  /** Status of a success. */
  status: 200 | 201;
  summary: string;
  description?: string;
  query: TObject;
  /** null: takes none. */
  body: TObject | null;
  response: TSchema;
  /** Codes beside those that any endpoint can answer. */
  errors: readonly WireCode[];
  example: Example;
  run(call: Call<never, never, never>): JsonText | Promise<JsonText>;
}

type Typed<Path extends string, Query extends TObject, Body extends TObject | null> = Omit<Endpoint, "path" | "query" | "body" | "run"> & {
  path: Path;
  query: Query;
  body: Body;
  run(
    call: Call<PathParameters<Path>, Static<Query>, Body extends TObject ? Static<Body> : Record<string, never>>,
  ): JsonText | Promise<JsonText>;
};

/** Whether a request with an `Idempotency-Key` is run once: whatever can change something and takes a body. */
export function isIdempotent({ body, scope }: Pick<Endpoint, "body" | "scope">): boolean {
  return body !== null && scope !== "read";
}

/** Gives `run` the types of the path and of the schemas beside it. */
export function endpoint<Path extends string, Query extends TObject, Body extends TObject | null>(
  definition: Typed<Path, Query, Body>,
): Endpoint {
  return definition;
}

/** Names of the parameters in a path: `/v1/sessions/{session_id}` has `session_id`. */
export function pathParameters(path: string): string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1] as string);
}

/** The name of an endpoint as an operation: `Create a session` is `createSession`, `List the turns of a session` is `listTurns`. */
export function operationId({ summary }: Pick<Endpoint, "summary">): string {
  const words = summary
    .replace(/ of .*/, "")
    .toLowerCase()
    .split(" ")
    .filter((word) => word !== "a" && word !== "an" && word !== "the");
  return words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join("");
}
