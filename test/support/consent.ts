/**
 * A browser in which somebody with an admin key connects whatever asks. As a program it is what `BROWSER` names.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import type { Scratch } from "./process.ts";

/** Follows an application to the dashboard and consents there. @returns where the dashboard sends the browser then */
export async function consentAt(url: string, key: string): Promise<string> {
  const handed = await fetch(url, { redirect: "manual" });
  const page = new URL(handed.headers.get("location") ?? "", url);
  const asked = { resource: `${page.origin}/mcp`, ...Object.fromEntries(new URLSearchParams(page.hash.slice(1))) };
  const headers = { "X-API-Key": key, "Content-Type": "application/json" };
  const answer = await fetch(`${page.origin}/v1/oauth/grants`, { method: "POST", headers, body: JSON.stringify(asked) });
  if (answer.status !== 201) throw new Error(await answer.text());
  return ((await answer.json()) as { redirect_to: string }).redirect_to;
}

/** Writes a program that opens each URL like that. @returns its path */
export function consentingBrowser(directory: Scratch, key: string): string {
  const path = directory.at("browser");
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${import.meta.path}" "${key}" "$@"\n`, { mode: 0o755 });
  return path;
}

const [, , key, url] = process.argv;
if (import.meta.main && key !== undefined && url !== undefined) await fetch(await consentAt(url, key));
