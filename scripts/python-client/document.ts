/**
 * The operations and schemas of the OpenAPI document, as the client for Python is made of them.
 *
 * @module
 */
import { OTHER_CLIENTS, schemasUsed, servedDocument, type Operation as Described, type Schema } from "../client-types.ts";

export const MADE = "made by scripts/python-client.ts from the OpenAPI document. Do not edit.";
export const WIDTH = 140;

export interface Operation extends Described {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter & { $ref?: string })[];
  readonly requestBody?: { content: { "application/json": { schema: Schema } } };
  readonly responses: Readonly<Record<string, { $ref?: string; content?: Readonly<Record<string, { schema: Schema }>> }>>;
}

type Parameter = NonNullable<Described["parameters"]>[number];

const document = servedDocument();
export const { schemas } = document.components;
export const responses = document.components.responses as Readonly<Record<string, { readonly description?: string }>>;

export const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Readonly<Record<string, Operation>>)
    // Probes are for what supervises the server.
    .filter(([, { tags }]) => !tags.includes(OTHER_CLIENTS) && !path.startsWith("/health/"))
    .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);
export type Endpoint = (typeof operations)[number];

export const answers = schemasUsed(
  schemas,
  operations.flatMap(({ operation }) => Object.entries(operation.responses).filter(([status]) => status < "300")),
);
export const requests = schemasUsed(
  schemas,
  operations.map(({ operation }) => operation.requestBody),
);

export function refName(ref: string): string {
  return ref.split("/").at(-1) ?? "";
}

export function pascal(member: string): string {
  return member.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Argument of a method. */
export interface Argument {
  readonly name: string;
  readonly type: string;
  /** Undefined for one that must be given. */
  readonly fallback?: string;
  readonly description: string;
  /** The name of the field, where that is another. */
  readonly field?: string;
}
