/**
 * An endpoint: a line of the API's table. Its schemas validate what comes in and are its documentation.
 *
 * Defaults follow from the rest of a line: the scope from the method, the 404s from the path, the examples from the
 * schemas, the parameters of a list from its being one.
 *
 * @module
 */
import { Type, type Static, type TObject, type TProperties, type TSchema } from "@sinclair/typebox";
import type { AnswerJson } from "../lib/answer.ts";
import { ApiError, type WireCode } from "../lib/errors.ts";
import type { JsonText } from "../lib/json.ts";
import type { Access, Scope } from "../lib/scopes.ts";
import type { IdempotencyGuard } from "./idempotency.ts";
import type { Ahead } from "../storage/ahead.ts";
import type { Owner } from "../storage/owner.ts";
import { missingCodes, type PathParameters } from "./path-parameters.ts";
import type { Chunks } from "./response-buffer.ts";
import { Deleted, exampleOf, Limit, Reason, type Resource } from "./types.ts";
import type { Fields } from "./validate.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Caller, as the key that was presented says. */
export interface ApiCaller {
  readonly actor: string;
  readonly keyId: `key_${string}`;
  /** Id of the key whose limits count: that of `keyId`, or the one that a session key came from. */
  readonly limitsId: `key_${string}`;
  /** Owner of the records that the key sees and changes. */
  readonly owner: Owner;
  readonly scopes: readonly string[];
  readonly retentionDays: number;
  readonly requestId: string;
  readonly startedAt: number;
  /** Set for a request with an idempotency key. */
  readonly once?: IdempotencyGuard;
  /** Kinds of secrets in the request, where the setting `secrets` has records marked with them. */
  readonly secrets?: readonly string[];
}

/** Arguments of an operation: the fields of its schemas in camelCase, with their defaults, and no others. */
export interface Call<Params, Query, Body, Sent = unknown> {
  params: Params;
  query: Query;
  body: Body;
  /** The body with the names it has on the wire. */
  sent: Sent;
  caller: ApiCaller;
}

type MemoryOperation = "search_memory" | "create_memory" | "update_memory" | "delete_memory";

/** A part of the API, as its documentation divides it. */
interface Tag {
  name: string;
  description: string;
  /** Default of its endpoints. */
  ignoresNearMisses?: true;
}

/** Request that the server posts to an address that the caller gives. */
export interface Callback {
  name: string;
  /** The address, as a runtime expression of OpenAPI. */
  url: string;
  summary: string;
  description: string;
  /** By name, what each is. */
  headers: Readonly<Record<string, string>>;
  body: TSchema;
  /** By name. */
  examples: Readonly<Record<string, object>>;
  /** By status, what follows from it. */
  answers: Readonly<Record<string, string>>;
}

export interface Endpoint {
  method: Method;
  /** As in the specification: `/v1/sessions/{session_id}`. */
  path: string;
  tag: Tag;
  scope: Access;
  /** Status of a success. */
  status: 200 | 201;
  /** Case in which the status is 200 because the record existed; undefined where that cannot be. */
  existing: string | undefined;
  /** True if the answer, unless it is `existing`, has nothing of a record that the request did not send. */
  echoes: boolean;
  summary: string;
  description: string | undefined;
  /** A header of a success that says how long it took. */
  latencyHeader: string | undefined;
  /** Operation on memories, as OpenTelemetry calls it. */
  memoryOperation: MemoryOperation | undefined;
  /** True if names that are nearly those of fields are ignored like other unknown ones, as programs made for another service expect. */
  ignoresNearMisses: boolean;
  /** Reads of the session that the path names, and others, for a store that fetches them with the key. */
  ahead: readonly Ahead[];
  query: TObject;
  /** null: takes none. */
  body: TObject | null;
  response: TSchema;
  /** Codes besides those that any endpoint can answer. */
  errors: readonly WireCode[];
  example: { request?: unknown; response: unknown };
  /** The type of the body of a success. */
  media: string;
  /** Set where that is not JSON: `run` is for JSON alone. */
  send: ((call: Call<never, never, never>, request: SendingRequest) => StreamResponse | Promise<StreamResponse>) | undefined;
  /** True if a ticket in the query stands for a key: a browser sends no header where it follows a link. */
  takesTicket: boolean;
  callback: Callback | undefined;
  run(call: Call<never, never, never, never>): AnswerJson | Promise<AnswerJson>;
}

/** Part of the request that an endpoint gets that sends a file or a stream. */
export interface SendingRequest {
  readonly headers: Headers;
  /** Checks whether the key that was presented is still valid. */
  readonly isAllowed: () => boolean | Promise<boolean>;
}

export interface StreamResponse {
  readonly body: Chunks | ReadableStream<Uint8Array>;
  readonly headers?: Record<string, string>;
}

/** Line of the table. */
interface EndpointSpec<Response extends TSchema> {
  summary: string;
  description?: string;
  /** A header of a success that says how long it took. */
  latencyHeader?: string;
  /** Operation on memories, as OpenTelemetry calls it. */
  memoryOperation?: MemoryOperation;
  /** True if names that are nearly those of fields are ignored like other unknown ones. Default: that of the group, or false. */
  ignoresNearMisses?: true;
  /** Reads besides the session that the path names, for a store that fetches them with the key. */
  ahead?: readonly Ahead[];
  /** Default: that of the group; without one `read` for GET and `write` for other methods. */
  scope?: Access;
  /** Default 200. */
  status?: 200 | 201;
  /** Case in which the answer is an existing record, with status 200. */
  existing?: string;
  /** True if the answer has nothing of a record that the request did not send. Default false. */
  echoes?: true;
  callback?: Callback;
  response: Response;
  /** Codes besides those that any endpoint can answer and those of records that the path names. */
  errors?: readonly WireCode[];
  /** Members of the example answer that differ from the example of `response`; undefined leaves one out. */
  example?: { [Name in keyof Static<Response>]?: Static<Response>[Name] | undefined };
}

interface OperationSpec<Path extends string, Query extends TObject, Body extends TObject> {
  query?: Query;
  body?: Body;
  run(
    call: Call<PathParameters<Path>, Fields<Query["properties"]>, Fields<Body["properties"]>, Static<Body>>,
  ): AnswerJson | Promise<AnswerJson>;
}

interface StreamingSpec<Path extends string, Query extends TObject> {
  media: string;
  takesTicket?: boolean;
  query?: Query;
  send: (
    call: Call<PathParameters<Path>, Fields<Query["properties"]>, Nothing>,
    request: SendingRequest,
  ) => StreamResponse | Promise<StreamResponse>;
}

type DeletionSpec<Path extends string, Query extends TObject> = Omit<EndpointSpec<Nothing>, "response"> &
  OperationSpec<Path, Query, Nothing> & {
    /** The schema of what is deleted. */
    deletes: Resource;
  };

interface ListSpec<Path extends string, Cursor extends TSchema, Filter extends TProperties> {
  /** The schema of `starting_after`. */
  cursor: Cursor;
  /** Parameters besides those of every list. */
  filter?: Filter;
  run: (call: {
    params: PathParameters<Path>;
    filter: Fields<Filter>;
    page: { limit: number; startingAfter?: Static<Cursor> };
    caller: ApiCaller;
  }) => JsonText | Promise<JsonText>;
}

const NOTHING = Type.Object({});
type Nothing = typeof NOTHING;

/** Returns what makes the endpoints of one part of the API, which may share a scope. */
export function endpointGroup(tag: Tag, groupScope?: Scope) {
  const endpoint =
    (method: Method) =>
    <Path extends string, Response extends TSchema, Query extends TObject = Nothing, Body extends TObject = Nothing>(
      path: Path,
      spec: EndpointSpec<Response> & OperationSpec<Path, Query, Body>,
    ): Endpoint => {
      const { body, response, errors = [] } = spec;
      return {
        scope: groupScope ?? (method === "GET" ? "read" : "write"),
        status: 200,
        existing: undefined,
        echoes: false,
        description: undefined,
        latencyHeader: undefined,
        memoryOperation: undefined,
        ignoresNearMisses: tag.ignoresNearMisses ?? false,
        ahead: [],
        query: NOTHING,
        body: null,
        media: "application/json",
        send: undefined,
        takesTicket: false,
        callback: undefined,
        ...spec,
        method,
        path,
        tag,
        errors: [...missingCodes(path), ...errors],
        example: { request: body && exampleOf(body), response: withChanges(exampleOf(response), spec.example) },
      };
    };
  const get = endpoint("GET");
  const remove = endpoint("DELETE");
  return {
    get,
    post: endpoint("POST"),
    patch: endpoint("PATCH"),

    /** A deletion takes a reason, unless `query` says otherwise, and answers with what was deleted. */
    delete: <Path extends string, Query extends TObject = typeof Reason>(
      path: Path,
      { deletes, query = Reason as TObject as Query, ...spec }: DeletionSpec<Path, Query>,
    ): Endpoint => remove(path, { ...spec, query, response: Deleted(deletes) }),

    /** A deletion that answers with a report. */
    erase: endpoint("DELETE"),

    /** The response is not JSON: a file, or a stream. Only HTTP has it. */
    send: <Path extends string, Response extends TSchema, Query extends TObject = Nothing>(
      path: Path,
      spec: EndpointSpec<Response> & StreamingSpec<Path, Query>,
    ): Endpoint => ({ ...get(path, { ...spec, run: () => refuseWithoutHttp(path) }), send: spec.send }),

    list: <Path extends string, Response extends TSchema, Cursor extends TSchema, Filter extends TProperties = Nothing["properties"]>(
      path: Path,
      { cursor, filter, run, ...spec }: EndpointSpec<Response> & ListSpec<Path, Cursor, Filter>,
    ): Endpoint =>
      get(path, {
        ...spec,
        query: Type.Object({ limit: Limit(), starting_after: Type.Optional(cursor), ...filter }),
        run: ({ params, query, caller }) => run({ params, ...pageAndFilter(query), caller } as never),
      }),
  };
}

function pageAndFilter({ limit, startingAfter, ...filter }: Record<string, unknown>): { page: object; filter: object } {
  return { page: { limit, startingAfter }, filter };
}

/** @throws {ApiError} `invalid_request` always */
function refuseWithoutHttp(path: string): never {
  throw new ApiError("invalid_request", `GET ${path} is answered over HTTP only.`);
}

/** @param example - of the schema: an object, or a text that nothing changes */
function withChanges(example: unknown, changes: object | undefined): unknown {
  return typeof example === "object" && changes !== undefined ? { ...example, ...changes } : example;
}

/** Checks whether a request with an `Idempotency-Key` is run once: whatever can change something and takes a body. */
export function isIdempotent({ body, scope }: Pick<Endpoint, "body" | "scope">): boolean {
  return body !== null && scope !== "read";
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
