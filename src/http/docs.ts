import type { Elysia } from "elysia";
import type { Endpoint } from "./endpoint.ts";
export function mountDocs(_app: Elysia, _endpoints: readonly Endpoint[], _version: string): void {}
