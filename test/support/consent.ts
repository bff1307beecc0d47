/**
 * A browser in which somebody with an admin key connects whatever asks. As a program it is what `BROWSER` names.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { asking, CALLBACK, codeIn, VERIFIER } from "./oauth.ts";
import type { Scratch } from "./process.ts";

/**
 * Follows an application to the dashboard and consents there.
 *
 * @param more - what the application is bound to, and for how long
 * @returns where the dashboard sends the browser then
 */
export async function consentAt(url: string, key: string, more: object = {}): Promise<string> {
  const handed = await fetch(url, { redirect: "manual" });
  const page = new URL(handed.headers.get("location") ?? "", url);
  const asked = { resource: `${page.origin}/mcp`, ...Object.fromEntries(new URLSearchParams(page.hash.slice(1))) };
  const headers = { "X-API-Key": key, "Content-Type": "application/json" };
  const answer = await fetch(`${page.origin}/v1/oauth/grants`, { method: "POST", headers, body: JSON.stringify({ ...asked, ...more }) });
  if (answer.status !== 201) throw new Error(await answer.text());
  return ((await answer.json()) as { redirect_to: string }).redirect_to;
}

/** Connects an application to a server that listens. @returns what it keeps, once it has refreshed its tokens */
export async function connectApplication(address: string, key: string, more: object) {
  const metadata = { client_name: "Notes", redirect_uris: [CALLBACK], grant_types: ["authorization_code", "refresh_token"] };
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(metadata) };
  const { client_id } = (await (await fetch(`${address}/register`, init)).json()) as { client_id: string };
  const asked = { ...asking(client_id), resource: `${address}/mcp` };
  const redirect_to = await consentAt(`${address}/authorize?${new URLSearchParams(asked).toString()}`, key, more);
  const tokens = async (fields: Record<string, string>) => {
    const answer = await fetch(`${address}/token`, { method: "POST", body: new URLSearchParams({ client_id, ...fields }) });
    return (await answer.json()) as { refresh_token: string };
  };
  const first = await tokens({ grant_type: "authorization_code", code: codeIn({ redirect_to }), code_verifier: VERIFIER });
  const { refresh_token } = await tokens({ grant_type: "refresh_token", refresh_token: first.refresh_token });
  return { client_id, resource: asked.resource, refresh_token };
}

/** Writes a program that opens each URL like that. @returns its path */
export function consentingBrowser(directory: Scratch, key: string): string {
  const path = directory.at("browser");
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${import.meta.path}" "${key}" "$@"\n`, { mode: 0o755 });
  return path;
}

const [, , key, url] = process.argv;
if (import.meta.main && key !== undefined && url !== undefined) await fetch(await consentAt(url, key));
