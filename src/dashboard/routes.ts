/**
 * The dashboard: a page at `/dashboard` and every path below it, and the page's files. Like the docs it needs no key: what it
 * shows comes from the API, with the key of the person who signs in.
 *
 * The policy lets the page load nothing but its own files, so that it works without any network, and lets no text become
 * markup or script, whatever agents have stored.
 *
 * @module
 */
import { acceptsEncoding } from "../http/gzip.ts";
import { pagePolicy } from "../http/page-policy.ts";
import { loadOnce } from "../lib/memoize.ts";
import { BASE, dashboardAssets, PAGE_NAME, type Asset } from "./bundle.ts";

const CACHED_FOR_EVER = "public, max-age=31536000, immutable";

const PAGE_HEADERS = {
  "Content-Security-Policy": pagePolicy("data:"),
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
};

export interface DashboardAnswer {
  status: 200 | 304;
  body: Blob | string;
  headers: Record<string, string>;
}

export const DASHBOARD_PATHS = [BASE.slice(0, -1), `${BASE}*`] as const;

/**
 * Returns what answers a path of the dashboard: undefined for a file that does not exist.
 *
 * @param load - returns the files, on the first request; a failure is not cached
 */
export function dashboardServer(load: () => Promise<Asset[]> = dashboardAssets) {
  const files = loadOnce(async () => new Map((await load()).map((asset) => [asset.name, asset])));
  return async (path: string, headers: Headers): Promise<DashboardAnswer | undefined> => {
    const name = path.slice(BASE.length);
    const assets = await files();
    // A script or style of an older version is missing, not a screen: a browser that got the page for it would fail obscurely.
    const asset = assets.get(name) ?? (/^[^/]+\.(js|css|svg)$/.test(name) ? undefined : assets.get(PAGE_NAME));
    return asset && answerOf(asset, headers);
  };
}

/**
 * Answer at `/`: the dashboard for a browser, and for a program where everything else is. A browser says that it takes HTML.
 */
export function rootAnswer(version: string, { headers }: Request) {
  if (headers.get("accept")?.includes("text/html") === true)
    return { status: 302, body: "", headers: { Location: BASE.slice(0, -1), Vary: "Accept" } };
  const body = JSON.stringify({
    name: "cairn",
    version,
    docs: "/docs",
    guide: "/docs/guide",
    openapi: "/openapi.json",
    dashboard: BASE.slice(0, -1),
  });
  return { status: 200, body, headers: { Vary: "Accept" } };
}

function answerOf(asset: Asset, requested: Headers): DashboardAnswer {
  const isPage = asset.name === PAGE_NAME;
  const [encoding, body] = chosenEncoding(asset, requested.get("accept-encoding") ?? "");
  const etag = `"${asset.hash}${encoding === "identity" ? "" : `-${encoding}`}"`;
  const headers: Record<string, string> = {
    ETag: etag,
    "Content-Type": asset.type,
    "Cache-Control": isPage ? "no-cache" : CACHED_FOR_EVER,
    "Cross-Origin-Resource-Policy": "same-origin",
    Vary: "Accept-Encoding",
    ...(isPage ? PAGE_HEADERS : {}),
  };
  const known = requested.get("if-none-match")?.split(",") ?? [];
  if (known.some((tag) => tag.trim().replace(/^W\//, "") === etag)) return { status: 304, body: "", headers };
  return { status: 200, body, headers: encoding === "identity" ? headers : { ...headers, "Content-Encoding": encoding } };
}

function chosenEncoding({ encodings }: Asset, accepted: string): ["br" | "gzip" | "identity", Blob] {
  for (const encoding of ["br", "gzip"] as const) {
    const encoded = encodings[encoding];
    if (encoded !== undefined && acceptsEncoding(accepted, encoding)) return [encoding, encoded];
  }
  return ["identity", encodings.identity];
}
