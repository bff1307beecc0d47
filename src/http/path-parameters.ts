/**
 * The parameters in the paths of endpoints.
 *
 * Their schemas are for documentation: a value that does not fit belongs to no record, so that it is answered with 404.
 *
 * @module
 */
import { Type, type TObject, type TSchema } from "@sinclair/typebox";
import { pathParameters } from "./endpoint.ts";
import { RecordId } from "./types.ts";

const PATH_PARAMETERS: Record<string, TSchema> = {
  session_id: RecordId("sess", "The session."),
  turn_id: RecordId("turn", "The turn."),
  memory_id: RecordId("mem", "The memory."),
  trace_id: RecordId("trace", "The trace."),
  key_id: RecordId("key", "The API key."),
  webhook_id: RecordId("whk", "The webhook."),
  delivery_id: RecordId("dlv", "The delivery."),
  version: Type.Integer({ minimum: 0, description: "The version; 0 is the initial state.", examples: [1] }),
};

/** Returns the schema of the parameters in a path, by name. */
export function pathSchema(path: string): TObject {
  return Type.Object(Object.fromEntries(pathParameters(path).map((name) => [name, PATH_PARAMETERS[name] ?? Type.String()])));
}
