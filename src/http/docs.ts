/**
 * The docs: a page for people at `/docs`, the OpenAPI document for programs at `/openapi.json`.
 *
 * The page is Swagger UI as @elysiajs/swagger renders it. That plugin has the browser load its script from another server; here
 * script and style are our own files, also in the executable, and the page may load nothing else, so that it works without any
 * network. Page and document are made on their first request, so that a start does not wait for them.
 *
 * @module
 */
import bundlePath from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import iconPath from "../dashboard/app/icon.svg" with { type: "file" };
import stylePath from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import { version as uiVersion } from "swagger-ui-dist/package.json";
import { toJson, type JsonText } from "../lib/json.ts";
import { loadOnce } from "../lib/memoize.ts";
import type { Endpoint } from "./endpoint.ts";
import { openApiDocument, SUMMARY, TITLE } from "./openapi.ts";

export interface Page {
  status: 200;
  body: JsonText | Blob;
  headers: Record<string, string>;
}

const PAGE = "/docs";
const DOCUMENT = "/openapi.json";
/** The version in the name lets browsers cache them for ever. */
const SCRIPT = `/docs/swagger-ui-bundle-${uiVersion}.js`;
const STYLE = `/docs/swagger-ui-${uiVersion}.css`;
const ICON = `/docs/icon-${uiVersion}.svg`;
const CACHED_FOR_EVER = "public, max-age=31536000, immutable";

/**
 * Returns the pages by their paths.
 *
 * @param render - makes the page on its first request; a failure is not cached
 */
export function docsPages(
  endpoints: readonly Endpoint[],
  version: string,
  render: () => Promise<Page> = renderPage,
): Record<string, () => Page | Promise<Page>> {
  let document: JsonText | undefined;
  return {
    [PAGE]: loadOnce(render),
    [DOCUMENT]: () => ({
      status: 200,
      body: (document ??= toJson(openApiDocument(endpoints, version))),
      headers: { "Cache-Control": "no-cache" },
    }),
    [SCRIPT]: () => uiFile(bundlePath, "text/javascript; charset=utf-8"),
    [ICON]: () => uiFile(iconPath, "image/svg+xml"),
    [STYLE]: () => uiFile(stylePath, "text/css; charset=utf-8"),
  };
}

function uiFile(path: string, type: string): Page {
  return { status: 200, body: Bun.file(path), headers: { "Content-Type": type, "Cache-Control": CACHED_FOR_EVER } };
}

async function renderPage(): Promise<Page> {
  const { swagger } = await import("@elysiajs/swagger");
  const swaggerOptions = {
    // Without the slash, as the plugin writes it, it would be another path below `/docs/`.
    url: DOCUMENT,
    // By default the page sends the document to a public server for validation.
    validatorUrl: "none",
    deepLinking: true,
    displayRequestDuration: true,
  };
  const documentation = { info: { title: `${TITLE} API`, description: SUMMARY, version: "" } };
  const plugin = swagger({ provider: "swagger-ui", path: PAGE, theme: STYLE, documentation, swaggerOptions });
  const written = await plugin.handle(new Request(`http://localhost${PAGE}`));
  const html = withOwnFiles(await written.text());
  return {
    status: 200,
    body: new Blob([html]),
    headers: { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "Content-Security-Policy": policyFor(html) },
  };
}

function withOwnFiles(html: string): string {
  const script = {
    element: (element: HTMLRewriterTypes.Element) => void element.setAttribute("src", SCRIPT).removeAttribute("crossorigin"),
  };
  const head = {
    element: (element: HTMLRewriterTypes.Element) =>
      void element.append(`<link rel="icon" href="${ICON}" type="image/svg+xml">`, { html: true }),
  };
  return new HTMLRewriter().on("script[src]", script).on("head", head).transform(html);
}

/** Allows our own files and, by their hashes, the scripts and styles in the page itself. */
function policyFor(html: string): string {
  const hashes = (tag: string) =>
    Array.from(html.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs")), ([, text = ""]) => {
      return ` 'sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}'`;
    }).join("");
  return [
    "default-src 'none'",
    `script-src 'self'${hashes("script")}`,
    `style-src 'self'${hashes("style")}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
