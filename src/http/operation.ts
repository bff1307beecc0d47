/**
 * An operation: what an endpoint does for a caller, once its arguments are checked.
 *
 * `call` does it without HTTP. For a request the pipeline takes the same steps with the arguments it reads from the request and
 * the caller it knows by its key. Rate limits and the memory of bodies and answers concern connections, not `call`.
 *
 * @module
 */
import type { TObject, TSchema } from "@sinclair/typebox";
import { statusAndJson, type AnswerJson } from "../lib/answer.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { hasAccess, hasScope } from "../lib/scopes.ts";
import { bodyOf, type Body } from "./body.ts";
import { isIdempotent, operationId, type ApiCaller, type Call, type Endpoint } from "./endpoint.ts";
import { apiErrorOf, type FailingStore } from "./errors.ts";
import { checkIdempotencyKey, type Idempotency } from "./idempotency.ts";
import { ConceptNames, fieldNamesOf, refuseNearMiss, type FieldNames } from "./near-misses.ts";
import { encodedPart } from "./path.ts";
import { pathParameters, pathSchema } from "./path-parameters.ts";
import { listParametersOf, refuseForeignFilter } from "./query.ts";
import { hasReceipt, receiptOf } from "./receipt.ts";
import type { SealingKeys } from "./seal.ts";
import { screenedOf } from "./screened.ts";
import { fieldReader, validator, type Validate } from "./validate.ts";
import type { Redaction, ScreenedMembers } from "../secrets/screen.ts";
import type { Admitted, SecretPolicy } from "../secrets/secret-policy.ts";

/** Dependencies of operations besides the endpoints. */
export interface OperationDeps {
  readonly idempotency: Idempotency;
  readonly settings: BodySettings;
  readonly store: FailingStore;
  readonly secrets: Pick<SecretPolicy, "admit">;
}

/** The settings about bodies, read for each of them since they change while Cairn runs. */
export interface BodySettings {
  readonly values: { readonly max_body_bytes: number };
}

/** The arguments of an operation as its `input` describes them. */
export interface Arguments {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export interface OperationAnswer {
  readonly status: number;
  readonly body: JsonText;
  /** True if this is the answer to an earlier call with the same idempotency key, so that nothing was changed. */
  readonly replayed: boolean;
  /** True if something may have been changed, so that the answer can no longer be refused. */
  readonly isChange: boolean;
}

/** A call whose arguments but for the body are checked. */
export interface CheckedCall extends Call<Record<string, string>, Record<string, unknown>, unknown> {
  /** Secrets that were taken out of what was sent. */
  readonly redacted: readonly Redaction[];
}

const NOTHING: Readonly<Record<string, unknown>> = {};
const NO_NAMES: readonly string[] = [];
const NONE: readonly Redaction[] = [];

export class Operation {
  readonly endpoint: Endpoint;
  /** The `operationId` in the OpenAPI document. */
  readonly name: string;
  readonly takesQuery: boolean;
  readonly takesBody: boolean;
  /** True if a call with an idempotency key is run once. */
  readonly isIdempotent: boolean;
  /** True if a call may change something. */
  readonly isChange: boolean;
  readonly #parameters: readonly string[];
  readonly #hasReceipt: boolean;
  readonly #listParameters: ReadonlySet<string>;
  readonly #queryNames: FieldNames;
  /** Checks whether another operation knows a name; undefined where unknown names are all ignored. */
  readonly #isKnown: ((name: string) => boolean) | undefined;
  readonly #checkQuery: Validate;
  readonly #checkBody: Validate;
  readonly #queryFields: Validate;
  readonly #bodyFields: Validate;
  /** Members that may have secrets; undefined where none may. */
  readonly #screened: { readonly body: ScreenedMembers | undefined; readonly query: ScreenedMembers | undefined };
  readonly #deps: OperationDeps;

  /** @param listParameters - what `listParametersOf` gives of all endpoints; @param names - those of all endpoints */
  constructor(endpoint: Endpoint, listParameters: ReadonlySet<string>, names: ConceptNames, deps: OperationDeps) {
    this.endpoint = endpoint;
    this.name = operationId(endpoint);
    this.takesQuery = Object.keys(endpoint.query.properties).length > 0;
    this.takesBody = endpoint.body !== null;
    this.isIdempotent = isIdempotent(endpoint);
    this.isChange = endpoint.method !== "GET" && endpoint.scope !== "read";
    this.#parameters = pathParameters(endpoint.path);
    this.#hasReceipt = hasReceipt(endpoint);
    this.#listParameters = listParameters;
    this.#queryNames = fieldNamesOf(endpoint.query);
    this.#isKnown = endpoint.ignoresNearMisses ? undefined : (name) => names.knows(endpoint, name);
    this.#checkQuery = validator(endpoint.query);
    this.#checkBody = validator(endpoint.body ?? endpoint.query, this.#isKnown);
    this.#queryFields = fieldReader(endpoint.query);
    this.#bodyFields = fieldReader(endpoint.body ?? endpoint.query);
    this.#screened = screenedOf(endpoint);
    this.#deps = deps;
  }

  /** The schemas of the arguments; null for an operation without a body. */
  get input(): { path: TObject; query: TObject; body: TObject | null } {
    const { path, query, body } = this.endpoint;
    return { path: pathSchema(path), query, body };
  }

  /** The schema of a success. */
  get output(): TSchema {
    return this.endpoint.response;
  }

  /**
   * Answers a call as HTTP answers the same request of the same key.
   *
   * @param retry - an idempotency key, ignored by operations that take none, and the caller's API key, which encrypts kept secrets
   * @throws {ApiError} the error that HTTP would answer with, and nothing else
   */
  async call(caller: ApiCaller, { path = {}, query = {}, body }: Arguments, retry?: SealingKeys): Promise<OperationAnswer> {
    try {
      this.authorize(caller.scopes);
      const params = Object.fromEntries(Object.entries(path).map(([name, value]) => [name, String(value)]));
      const call = this.check(caller, params, query, Object.keys(query));
      if (!this.takesBody) return await this.run(call);
      const once = this.isIdempotent ? retry : undefined;
      if (once !== undefined) checkIdempotencyKey(once.idempotencyKey);
      const sent = bodyOf(body, this.#deps.settings.values.max_body_bytes);
      return await this.runWithBody(call, sent, this.#pathWith(call.params), once);
    } catch (error) {
      throw apiErrorOf(error, this.#deps.store);
    }
  }

  #pathWith(params: Record<string, string>): string {
    return this.endpoint.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodedPart(params[name] ?? ""));
  }

  /** @throws {ApiError} `permission_denied` without the scope that the operation needs */
  authorize(scopes: readonly string[]): void {
    const { scope } = this.endpoint;
    if (hasAccess(scopes, scope)) return;
    const needed = scope === "any" ? "an API key" : `a key with the scope ${scope}`;
    const has = scopes.length === 0 ? "is for signing in only" : `has ${scopes.join(", ")}`;
    throw new ApiError("permission_denied", `This needs ${needed}; this one ${has}.`);
  }

  /**
   * Checks all arguments but the body.
   *
   * @param params - of the path, changed in place; null is one that could not be decoded, which is no record's id
   * @param query - parameters that the endpoint knows, as its schema types them
   * @param names - all parameters of the query that were sent
   * @throws {ApiError} `invalid_request` naming the parameter
   */
  check(
    caller: ApiCaller,
    params: Record<string, string | null>,
    query: Record<string, unknown> = NOTHING,
    names: readonly string[] = NO_NAMES,
  ): CheckedCall {
    for (const name of this.#parameters) params[name] ??= "";
    let checked = NOTHING;
    let redacted = NONE;
    if (this.takesQuery) {
      refuseForeignFilter(names, this.endpoint, this.#listParameters);
      if (this.#isKnown !== undefined) {
        const isThere = (name: string) => names.includes(name);
        for (const name of names) refuseNearMiss(name, this.#queryNames, "", isThere, this.#isKnown);
      }
      let sent = query;
      if (this.#screened.query !== undefined) ({ value: sent, redacted } = this.#deps.secrets.admit(query, this.#screened.query));
      checked = this.#queryFields(this.#checkQuery(sent));
    }
    return { params: params as Record<string, string>, query: checked, body: NOTHING, sent: NOTHING, caller, redacted };
  }

  /** Runs an operation that takes no body: synchronously if it waits for nothing. */
  run(call: CheckedCall): OperationAnswer | Promise<OperationAnswer> {
    const answer = this.endpoint.run(call as never);
    return answer instanceof Promise ? answer.then((given) => this.#success(call, given)) : this.#success(call, answer);
  }

  /**
   * Runs an operation that takes a body.
   *
   * @param path - with the values of its parameters, to tell idempotent calls apart
   * @param retry - makes the call idempotent
   * @throws {ApiError} `invalid_request` naming the field, unless an earlier answer is found
   */
  runWithBody(call: CheckedCall, body: Body, path: string, retry: SealingKeys | undefined): OperationAnswer | Promise<OperationAnswer> {
    const { value, redacted, marked } = this.#admit(body);
    const callOf = (caller: ApiCaller): CheckedCall => {
      const sent = this.#checkBody(value);
      return {
        ...call,
        body: this.#bodyFields(sent),
        sent,
        redacted,
        caller: marked.length === 0 ? caller : { ...caller, secrets: marked },
      };
    };
    if (retry === undefined) return this.run(callOf(call.caller));
    const { method, status } = this.endpoint;
    // A fingerprint of what is not kept would tell of a short secret.
    const bytes = redacted.length === 0 ? body.bytes : new TextEncoder().encode(toJson(value));
    const identity = { ...retry, limitsId: call.caller.limitsId, method, path, body: bytes };
    return this.#deps.idempotency
      .run(identity, status, (once) => this.endpoint.run(callOf({ ...call.caller, once }) as never))
      .then(({ status: given, answer, replayed }) => {
        const shown = this.#shown(call.caller, given, answer);
        return { status: given, body: withRedacted(shown, redacted), replayed, isChange: !replayed };
      });
  }

  #admit({ value }: Body): Admitted {
    const { body } = this.#screened;
    return body === undefined ? { value, redacted: NONE, marked: NO_NAMES } : this.#deps.secrets.admit(value, body);
  }

  #success({ caller, redacted }: CheckedCall, answer: AnswerJson): OperationAnswer {
    const { status, json } = statusAndJson(answer, this.endpoint.status);
    return { status, body: withRedacted(this.#shown(caller, status, json), redacted), replayed: false, isChange: this.isChange };
  }

  /** A key that may not read is not shown what it did not send. */
  #shown({ scopes }: ApiCaller, status: number, json: JsonText): JsonText {
    if (!this.#hasReceipt || hasScope(scopes, "read")) return json;
    return this.endpoint.echoes && status === this.endpoint.status ? json : receiptOf(json);
  }
}

/** An answer that says what was taken out of its request. */
function withRedacted(json: JsonText, redacted: readonly Redaction[]): JsonText {
  return redacted.length === 0 ? json : (`${json.slice(0, -1)},"redacted":${toJson(redacted)}}` as JsonText);
}

export function operationsOf(endpoints: readonly Endpoint[], deps: OperationDeps): Operation[] {
  const listParameters = listParametersOf(endpoints);
  const names = new ConceptNames(endpoints);
  return endpoints.map((endpoint) => new Operation(endpoint, listParameters, names, deps));
}
