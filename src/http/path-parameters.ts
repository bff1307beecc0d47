/**
 * Parameters in paths: what each is, and the error for one that names no record.
 *
 * Their schemas are documentation: a value that does not fit belongs to no record, so that it is answered with 404.
 *
 * @module
 */
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import type { WireCode } from "../lib/errors.ts";
import { invariant } from "../lib/invariant.ts";
import { RecordId } from "./types.ts";

interface PathParameter {
  schema: TSchema;
  /** The code of the 404. */
  missing: WireCode;
}

const PATH_PARAMETERS: Record<string, PathParameter> = {
  session_id: { schema: RecordId("sess", "The session."), missing: "session_not_found" },
  turn_id: { schema: RecordId("turn", "The turn."), missing: "turn_not_found" },
  memory_id: { schema: RecordId("mem", "The memory."), missing: "memory_not_found" },
  trace_id: { schema: RecordId("trace", "The trace."), missing: "trace_not_found" },
  retrieval_id: { schema: RecordId("ret", "The retrieval."), missing: "resource_not_found" },
  key_id: { schema: RecordId("key", "The API key."), missing: "resource_not_found" },
  webhook_id: { schema: RecordId("whk", "The webhook."), missing: "resource_not_found" },
  delivery_id: { schema: RecordId("dlv", "The delivery."), missing: "resource_not_found" },
  backup_id: { schema: RecordId("bkp", "The backup."), missing: "resource_not_found" },
  user_id: {
    schema: Type.String({ description: "The user.", examples: ["user-42"] }),
    missing: "resource_not_found",
  },
  version: {
    schema: Type.Integer({ minimum: 0, description: "The version; 0 is the initial state.", examples: [1] }),
    missing: "version_not_found",
  },
};

/** The parameters of a path by name: `/v1/sessions/{session_id}/turns/{turn_id}` gives `{ session_id: string; turn_id: string }`. */
export type PathParameters<Path extends string> = Record<ParameterName<Path>, string>;
type ParameterName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParameterName<Rest> : never;

/** Names of the parameters in a path: `/v1/sessions/{session_id}` has `session_id`. */
export function pathParameters(path: string): string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1] as string);
}

function parameterOf(name: string): PathParameter {
  const parameter = PATH_PARAMETERS[name];
  invariant(parameter !== undefined, `nothing says what ${name} in a path is`);
  return parameter;
}

/** Returns the schema of the parameters in a path, by name. */
export function pathSchema(path: string): TObject {
  return Type.Object(Object.fromEntries(pathParameters(path).map((name) => [name, parameterOf(name).schema])));
}

/** Returns the codes of a path whose parameters name records that are not there. */
export function missingCodes(path: string): WireCode[] {
  return [...new Set(pathParameters(path).map((name) => parameterOf(name).missing))];
}
