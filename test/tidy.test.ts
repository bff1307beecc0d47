/**
 * The rules of the codebase, as far as a machine can see them. When the same slip shows up twice, it gets a line here.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { Glob } from "bun";
import { GENERATED_PAGES, unpadded, withGeneratedParts } from "../scripts/generated-pages.ts";
import { INDEX_PATH, linkedPages, SKILL_PATH } from "../src/docs/contents.ts";
import { PAGES as PAGE_PATHS, pageText } from "./support/pages.ts";

const ROOT = dirname(import.meta.dir);

interface Source {
  path: string;
  text: string;
  /** Without comments. */
  code: string;
}

function sources(pattern: string): Source[] {
  return Array.from(new Glob(pattern).scanSync(ROOT))
    .sort()
    .map((path) => {
      const text = readFileSync(join(ROOT, path), "utf8");
      return { path, text, code: text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "") };
    });
}

/** What runs in a browser has fences of its own. */
const APP = [...sources("src/dashboard/app/**/*.{ts,tsx}"), ...sources("src/docs/browser/*.ts")];
const PRODUCT = sources("src/**/*.ts").filter(({ path }) => !/^src\/(dashboard\/app|docs\/browser)\//.test(path));
const ALL = [...PRODUCT, ...APP, ...sources("test/**/*.ts"), ...sources("scripts/**/*.ts")];

/** Who may write what; everyone else goes through them. */
const FENCES: { what: string; pattern: RegExp; allowed: RegExp }[] = [
  {
    what: "elysia",
    pattern: /from "(elysia|@elysiajs\/[\w-]+)"/,
    allowed: /^src\/(server\/(app|oauth-paths)\.ts|http\/|[\w-]+\/(routes|schema)\.ts)/,
  },
  {
    what: "TypeBox",
    pattern: /from "@sinclair\/typebox/,
    allowed: /^src\/(server\/app\.ts|http\/|(mcp|compat)\/|storage\/(tables\/[\w-]+|row-types)\.ts|[\w-]+\/(routes|schema)\.ts)/,
  },
  { what: "lmdb", pattern: /from "lmdb"/, allowed: /^src\/storage\/lmdb\/(store|environment|writer|reader)\.ts$/ },
  {
    what: "the driver of PostgreSQL",
    pattern: /import [^;]*\bSQL\b[^;]* from "bun"/,
    allowed: /^src\/storage\/postgres\/connection\/database\.ts$/,
  },
  {
    what: "hnswlib-node",
    pattern: /from "hnswlib-node"/,
    allowed: /^src\/search\/(graph\/hnsw-index|row-comparer)\.ts$/,
  },
  { what: "the package of MCP", pattern: /from "@modelcontextprotocol\//, allowed: /^src\/(mcp\/|cli\/mcp\.ts$)/ },
  { what: "OpenTelemetry", pattern: /from "@opentelemetry\//, allowed: /^src\/telemetry\// },
  // It looks names up by itself and obeys proxy variables.
  { what: "fetch", pattern: /(?<![.\w])fetch\(/, allowed: /^src\/(client\/http|cli\/hook\/server)\.ts$/ },
  {
    what: "outbound requests",
    pattern: /^import (?!type ).* from "node:(http|https|net|tls)"/m,
    allowed: /^src\/(lib\/(addresses|outbound)|cli\/(latest|http-client|proven-server))\.ts$/,
  },
  {
    what: "the time",
    pattern: /\bDate\.now\b|\bnew Date(\(\)|;)|[^w] Date\(\)|\bperformance\.(now|timeOrigin)\b|\bhrtime\b|\bBun\.nanoseconds\b/,
    allowed: /^src\/(lib\/clock|client\/(http|webhooks)|adapters\/shared\/clock)\.ts$/,
  },
  { what: "chance", pattern: /\bMath\.random\b/, allowed: /^src\/(lib\/chance|client\/http)\.ts$/ },
  {
    what: "secrets and names that are drawn, which no scope of the store does",
    pattern: /\b(crypto\.getRandomValues|random(UUID|UUIDv7|Bytes|Int|FillSync))\b/,
    allowed:
      /^src\/(lib\/(base62|native)|http\/idempotency|webhooks\/signature|search\/(search-index|replica\/replica-copy|words\/term-index|snapshot\/snapshot)|server\/store-parts|storage\/audit\/chain|storage\/postgres\/(postgres-store|commit\/(commits|commit-tokens))|operations\/own-backups|cli\/selftest\/(own-server|erasure)|embeddings\/words\/(terms|token-cache)|mcp\/api|(client|adapters)\/.+)\.ts$/,
  },
  {
    what: "where ids come from",
    pattern: /\bnew IdSource\(/,
    allowed: /^src\/(storage\/(lmdb\/writer|postgres\/commit\/commits)|http\/pipeline|cli\/plain-listener)\.ts$/,
  },
  {
    what: "timers",
    pattern: /\b(setTimeout|setInterval|setImmediate)\(|\bBun\.sleep\(/,
    allowed:
      /^src\/(lib\/clock|tasks\/driver|search\/(worker|vector-index)|cli\/(serve|setup\/own-files)|client\/(http|exchange)|adapters\/shared\/clock)\.ts$/,
  },
  { what: "the length of an hour and of a day", pattern: /\b(3_600_000|86_400_000)\b/, allowed: /^src\/lib\/duration\.ts$/ },
  {
    what: "the environment",
    pattern: /\bprocess\.env\b|\bBun\.env\b/,
    allowed: /^src\/(config|cli\/hook\/environment|dashboard\/bundle)\.ts$/,
  },
  { what: "synchronous transactions of LMDB", pattern: /\btransactionSync\(/, allowed: /^$/ },
  { what: "synchronous writes of LMDB", pattern: /\b(putSync|removeSync)\(/, allowed: /^src\/storage\/lmdb\/writer\.ts$/ },
  { what: "for-in, which visits inherited keys", pattern: /\bfor \((const|let) \w+ in /, allowed: /^$/ },
  {
    what: "the clock, where a scope of the store has its own moment",
    pattern: /\bclock\.now\(\)/,
    allowed:
      /^src\/(lib\/(clock|ids)|storage\/(lmdb\/reader|postgres\/(commit\/commits|postgres-store|leases|migrations|shared-buckets|follow\/trace-follower))|http\/\w+|certificates\/(certificates|acme)|server\/(app|oauth-paths|store-metrics)|traces\/(event-stream|feed|retention)|(sessions|memories)\/expiry|stats\/activity|telemetry\/otlp|webhooks\/(worker|attempt|retention)|operations\/(backup|upgrade)|embeddings\/remote\/\w+)\.ts$/,
  },
  {
    what: "state of a module, which no owner closes and no test resets",
    // Of what is made once and filled there, or cannot change, a module may have as much as it likes.
    pattern:
      /^(export )?let |^(export )?const \w+(: (?!readonly |Readonly<)[^=]+)? = (\[\];|\{\};|new (?!(Map|Set)(<.*>)?\((?!\))|RegExp\(|Text(De|En)coder\(|\w+Array\(0\))\w)/m,
    allowed:
      /^src\/(search\/(worker|packed)|cli\/(http-client|bench\/load\/workload)|lib\/clock|http\/path|operations\/files|embeddings\/(builtin\/(encoder-worker|token-count)|words\/(characters|terms)))\.ts$/,
  },
];

for (const { what, pattern, allowed } of FENCES) {
  test(`only those who own it touch: ${what}`, () => {
    const outside = PRODUCT.filter(({ path, code }) => pattern.test(code) && !allowed.test(path)).map(({ path }) => path);
    expect(outside).toEqual([]);
  });
}

/** In the dashboard: text never becomes markup or code, one file has the key, one file calls the API. */
const APP_FENCES: typeof FENCES = [
  {
    what: "markup from text",
    pattern: /dangerouslySetInnerHTML|(inner|outer)HTML|insertAdjacentHTML|DOMParser|document\.write/,
    allowed: /^$/,
  },
  { what: "code from text", pattern: /\beval\(|new Function\(|javascript:/, allowed: /^$/ },
  { what: "cookies and storage that stays", pattern: /document\.cookie|localStorage|indexedDB|\bcaches\b/, allowed: /^$/ },
  { what: "the session key", pattern: /\bsessionStorage\b|BroadcastChannel/, allowed: /\/session\.ts$/ },
  {
    what: "requests",
    pattern: /(?<![.\w])fetch\(|EventSource|WebSocket|XMLHttpRequest|sendBeacon/,
    allowed: /\/(api|docs\/browser\/search)\.ts$/,
  },
  {
    // It runs after a paint, and takes back what a person did in between: `useDraft` does so before.
    what: "signals, in an effect that only writes one",
    pattern: /useEffect\(\(\) => (void \(|\{\s*)[\w.]+\.value = /,
    allowed: /^$/,
  },
  { what: "the server's globals", pattern: /\bBun\.|\bprocess\.|^import[^;]*from "(node|bun)[:"]/m, allowed: /^$/ },
];

for (const { what, pattern, allowed } of APP_FENCES) {
  test(`in the dashboard only those who own it touch: ${what}`, () => {
    const outside = APP.filter(({ path, code }) => pattern.test(code) && !allowed.test(path)).map(({ path }) => path);
    expect(outside).toEqual([]);
    expect(APP.length).toBeGreaterThan(10);
  });
}

test("the dashboard takes the client of the API and types from outside, and nothing else", () => {
  const values = APP.flatMap(({ path, text }) =>
    Array.from(text.matchAll(/^import (?!type )[^;]*?from "(\.[^"]+)";$/gm), (match) => normalize(join(dirname(path), match[1] as string)))
      .filter((target) => !/^src\/(dashboard\/app|client)\//.test(target))
      .map((target) => `${path} -> ${target}`),
  );
  expect(values).toEqual([]);
});

/** Lower layers first; a module imports from its own layer's folder or from lower ones. `main.ts` may import anything. */
const LAYERS: readonly (readonly RegExp[])[] = [
  [/^src\/lib\//],
  [/^src\/tasks\//, /^src\/secrets\//],
  [/^src\/storage\//],
  [/^src\/embeddings\//],
  [/^src\/search\//],
  [/^src\/http\//],
  [/^src\/audit\//, /^src\/traces\//, /^src\/filters\//],
  [/^src\/keys\//, /^src\/settings\//, /^src\/sessions\//, /^src\/webhooks\//],
  [/^src\/oauth\//, /^src\/turns\//, /^src\/memories\//, /^src\/documents\//, /^src\/retrievals\//],
  [
    /^src\/context\//,
    /^src\/operations\//,
    /^src\/backups\//,
    /^src\/certificates\//,
    /^src\/timeline\//,
    /^src\/stats\//,
    /^src\/trial\//,
    /^src\/users\//,
    /^src\/events\//,
    /^src\/dashboard\//,
    /^src\/docs\//,
  ],
  [/^src\/mcp\//, /^src\/compat\//, /^src\/telemetry\//],
  [/^src\/server\//, /^src\/config\.ts$/],
  // Nothing below may import what runs elsewhere.
  [/^src\/client\//],
  [/^src\/cli\//],
  [/^src\/main\.ts$/],
  [/^src\/adapters\//],
];

function importsOf({ path, text }: Source): string[] {
  return Array.from(text.matchAll(/(?:from|import\()\s*"(\.{1,2}\/[^"]+\.ts)"/g), (match) =>
    normalize(join(dirname(path), match[1] as string)),
  );
}

const layerOf = (path: string) => LAYERS.findIndex((patterns) => patterns.some((pattern) => pattern.test(path)));

test("imports point down", () => {
  const wrong = PRODUCT.flatMap((source) =>
    importsOf(source)
      .filter((target) => target.startsWith("src/") && layerOf(target) > layerOf(source.path))
      .map((target) => `${source.path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("neither engine of the store knows the other, and what they share knows neither", () => {
  const engineOf = (path: string) => /^src\/storage\/(lmdb|postgres)\//.exec(path)?.[1];
  const wrong = PRODUCT.filter(({ path }) => path.startsWith("src/storage/")).flatMap((source) =>
    importsOf(source)
      .filter((target) => engineOf(target) !== undefined && engineOf(target) !== engineOf(source.path))
      .map((target) => `${source.path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("who catches what a read of the store throws throws it on: `NotFetched` has the store fetch, and run the function again", () => {
  const reads = /\b(reader|tx)\b/;
  const swallowed = PRODUCT.flatMap(({ path, code }) =>
    Array.from(code.matchAll(/\n( *)(?:\S.*)?try \{\n([^]*?)\n\1\} catch(?: \(\w+\))? \{\n([^]*?)\n\1\}/g))
      .filter(([, , tried = "", caught = ""]) => reads.test(tried) && !/\bawait\b/.test(tried) && !/\bthrow\b|\bNotFetched\b/.test(caught))
      .map(() => path),
  );
  // One transaction settles with what its callback threw; the embedded store, whose reads fetch nothing, asks itself.
  expect(swallowed).toEqual(["src/storage/callback.ts", "src/storage/lmdb/writer.ts"]);
});

test("every module of the product has its place in the layers", () => {
  expect(PRODUCT.map(({ path }) => path).filter((path) => layerOf(path) === -1)).toEqual([]);
});

test("the client imports nothing but itself, and adapters nothing but it and their frameworks: they run elsewhere", () => {
  const imports = PRODUCT.flatMap(({ path, code }) =>
    Array.from(code.matchAll(/(?:\bfrom|\bimport)[ (]+"([^"]+)"/g), ([, target = ""]) => ({ path, target })),
  ).map(({ path, target }) => ({ path, target: target.startsWith(".") ? normalize(join(dirname(path), target)) : target }));
  const isAllowed = ({ path, target }: { path: string; target: string }) => {
    if (path.startsWith("src/client/")) return target.startsWith("src/client/");
    return (
      target === "src/client/index.ts" || target.startsWith("src/adapters/") || /^[@a-z]/.test(target.replace(/^(src\/|node:|bun).*/, ""))
    );
  };
  const outside = imports.filter(({ path }) => /^src\/(client|adapters)\//.test(path));
  expect(outside.filter((one) => !isAllowed(one))).toEqual([]);
  expect(outside.length).toBeGreaterThan(20);
});

test("operations know nothing of HTTP: only routes, schemas and the application import it", () => {
  const wrong = PRODUCT.flatMap((source) =>
    importsOf(source)
      .filter((target) => target.startsWith("src/http/"))
      .filter(() => !/^src\/((http|server|cli|mcp|compat|telemetry)\/|[\w-]+\/(routes|schema)\.ts)/.test(source.path))
      .map((target) => `${source.path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("a concept's routes are imported by the application alone", () => {
  const wrong = PRODUCT.filter(({ path }) => !/^src\/server\/(app|oauth-paths)\.ts$/.test(path)).flatMap((source) =>
    importsOf(source)
      .filter((target) => target.endsWith("/routes.ts"))
      .map((target) => `${source.path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("every module of the product says at its head what it is for", () => {
  const silent = [...PRODUCT, ...APP].filter(
    ({ path, text }) => !path.endsWith(".d.ts") && !/^\/\*\*[\s\S]*?@module\s*\n? \*\//.test(text),
  );
  expect(silent.map(({ path }) => path)).toEqual([]);
});

/** Words of a dialect, with what this project writes instead. */
const BANNED_WORDS: Readonly<Record<string, RegExp>> = {
  'write "again", or "rebuild", "start over"': /\banew\b/i,
  'write "at most N", "this many", or name the number': /\bso many\b/i,
  'write "called with"': /\b(is|are) told\b/i,
  'write "the caller", "an operator", "others who"': /\bwhoever\b/i,
  'write "a previous one"': /\bof one before\b/i,
  'write "releases", "drops"': /\blets go\b/i,
  'write "continues", "keeps working"': /\bgoes on\b/i,
  'write "next to", "with", "besides"': /\bbeside\b/i,
  'write "pending"': /\bowed\b/i,
  'write "repair"': /\bmend(s|ed|ing)?\b/i,
  'write "change buffer"': /\blate (entries|index)\b/i,
  'write "read-only"': /\bmust not be written to\b/i,
  'write "callback"': /\b(a|A|[Tt]he same|[Qq]ueued|[Ss]everal) works?\b (that|runs?|is|are|has|share)/,
  'write "snapshot"': /\b(one|same|another) moment of the store\b/i,
  'write "threshold"': /\bconst bar\b/,
  'write "probes"': /\blooksMax\b|\.looks\b/,
  'write "partition"': /\b(commit|bareId)\(home\b/,
  'write "for callers that", "for clients that"': /\bfor who\b/i,
  'write "space", "fits"': /\b([Nn]o|[Mm]ake|[Nn]eeds?|[Ff]inds?) room\b/,
  'write "NotFetched"': /"Unread"/,
  'write "global tables"': /\btables for all\b/i,
  'write "project", "codebase"': /\b(of the|this) house\b/i,
};

const PAGES = PAGE_PATHS.map((path) => ({ path, text: pageText(path) }));

test("the product is written in the words of its field", () => {
  const found = [...PRODUCT, ...APP, ...PAGES].flatMap(({ path, text }) =>
    Object.entries(BANNED_WORDS)
      .filter(([, pattern]) => pattern.test(text))
      .map(([advice]) => `${path}: ${advice}`),
  );
  expect(found).toEqual([]);
});

test("a doc comment begins with what it is about, not with what it is of", () => {
  const pattern = /\/\*\* (Of|So (many|much)) /;
  expect([...PRODUCT, ...APP].filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
});

/** Descriptions of the API, which users read beside the name of their field. */
const GENERATED = "src/client/types.ts";

test("a comment opens with a noun or a verb", () => {
  const pattern = /(\/\*\*|\/\/|^ *\*) (Whether|What|How|Who|Whose|Where|Those|Which|Why|When) /m;
  const found = [...PRODUCT, ...APP].filter(({ path, text }) => path !== GENERATED && pattern.test(text));
  expect(found.map(({ path }) => path)).toEqual([]);
});

test("no line of a comment is wider than the code", () => {
  const { printWidth } = JSON.parse(readFileSync(join(ROOT, "scripts/oxfmt.json"), "utf8")) as { printWidth: number };
  const wide = [...PRODUCT, ...APP].flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, i) => (line.length > printWidth && /^\s*(\/\/|\/?\*)/.test(line) ? [`${path}:${i + 1}`] : [])),
  );
  expect(wide).toEqual([]);
});

/** Files that were longer when the rule came, with the lines that they may have: a number here only shrinks. */
const LONGER_FILES: Readonly<Record<string, number>> = {
  "src/memories/schema.ts": 477,
  "src/memories/search.ts": 412,
};

test("a file has at most 400 lines, and a longer one of before no more than it had", () => {
  const lengths = [...PRODUCT, ...APP, ...sources("scripts/**/*.ts")].map(({ path, text }) => ({
    path,
    lines: text.split("\n").length - 1,
  }));
  expect(lengths.filter(({ path, lines }) => path !== GENERATED && lines > (LONGER_FILES[path] ?? 400))).toEqual([]);
  const long = lengths.filter(({ lines }) => lines > 400).map(({ path }) => path);
  expect(Object.keys(LONGER_FILES).filter((path) => !long.includes(path))).toEqual([]);
});

test("files and folders are named in kebab-case", () => {
  expect(ALL.map(({ path }) => path).filter((path) => !/^([a-z0-9-]+\/)*[a-z0-9-]+(\.[a-z]+)+$/.test(path))).toEqual([]);
});

test("no test is switched off, alone, or unable to fail", () => {
  const pattern = /\b(test|it|describe)\.(skip|todo|only|if|skipIf|todoIf)\(|expect\(true\)\.toBe\(true\)/;
  // What a machine lacks, or a store, is skipped by one function each, with the reason in the name.
  const allowed = ["test/tidy.test.ts", "test/support/platform.ts", "test/support/stores.ts"];
  expect(ALL.filter(({ path, code }) => !allowed.includes(path) && pattern.test(code)).map(({ path }) => path)).toEqual([]);
});

test("a patch begins with what is known of it upstream, why it is there, and when it goes", () => {
  const patches = ["scripts/lmdb", "scripts/hnswlib"].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith(".patch"))
      .map((name) => join(folder, name)),
  );
  expect(patches.length).toBeGreaterThan(10);
  const head = /^.+\.\n\nUpstream: (None\.|LMDB ITS#\d+|lmdb-js |hnswlib)(.|\n  )*\nWhy: (.|\n  )+\nRemove when: (.|\n  )+\n\n/;
  expect(patches.filter((path) => !head.test(readFileSync(join(ROOT, path), "utf8")))).toEqual([]);
});

test("nothing in the project points to one machine or to a package registry", () => {
  const pattern = /(^|[^\w.~/-])\/(work|root|farm|home)\/|registry\.npm|npmjs\.|deb\.debian/;
  const documents = ["NOTICE", "package.json", "bun.lock"].map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
  expect(
    [...ALL, ...PAGES, ...documents].filter(({ path, text }) => path !== "test/tidy.test.ts" && pattern.test(text)).map(({ path }) => path),
  ).toEqual([]);
});

test("the map names every folder of the product", () => {
  const map = pageText("src/docs/contribute/map.md");
  const folders = new Set(PRODUCT.map(({ path }) => path.split("/")[1] as string).filter((name) => !name.includes(".")));
  expect([...folders].filter((folder) => !map.includes(`${folder}/`))).toEqual([]);
});

test("the map of the tests names every file of the front door", () => {
  const map = pageText("test/README.md");
  const files = sources("test/*.test.ts").map(({ path }) => basename(path, ".test.ts"));
  expect(files.filter((name) => !map.includes(`\`${name}\``))).toEqual([]);
});

test("the map names no file that is not there", () => {
  const map = pageText("src/docs/contribute/map.md");
  const files = new Set([...PRODUCT, ...APP].map(({ path }) => basename(path)));
  const named = Array.from(map.matchAll(/`(?:[\w-]+\/)*([\w-]+\.ts)`/g), (match) => match[1] as string);
  expect(named.filter((name) => !files.has(name))).toEqual([]);
  expect(named.length).toBeGreaterThan(100);
});

test("the map has a request checked in the order of the application's head", () => {
  const [, map = ""] = /^server\/app\.ts +(Host.+?) {2,}/m.exec(pageText("src/ARCHITECTURE.md")) ?? [];
  const [, head = ""] = /^ \* (Host → .+) → operation$/m.exec(readFileSync(join(ROOT, "src/server/app.ts"), "utf8")) ?? [];
  expect(map.split(", ")).toEqual(head.split(" → "));
});

test("a path of the map names files that exist, each once, and climbs at most twice", () => {
  const paths = Array.from(
    pageText("src/ARCHITECTURE.md").matchAll(/^\*\*(?:A|An) (\w+)\*\*.*\n\n```\n([^]*?)```/gm),
    ([, name = "", text = ""]) => ({
      name,
      files: Array.from(text.matchAll(/^([\w/-]+\.ts) /gm), ([, file = ""]) => `src/${file}`),
    }),
  );
  expect(paths.map(({ name }) => name)).toEqual(["read", "change", "search", "event"]);
  for (const { name, files } of paths) {
    const layers = files.map(layerOf);
    expect(files.length).toBeGreaterThan(7);
    expect({ name, missing: files.filter((file) => !existsSync(join(ROOT, file))) }).toEqual({ name, missing: [] });
    expect({ name, twice: files.filter((file, i) => files.indexOf(file) !== i) }).toEqual({ name, twice: [] });
    expect({ name, climbs: layers.filter((layer, i) => i > 0 && layer > (layers[i - 1] as number)).length <= 2 }).toEqual({
      name,
      climbs: true,
    });
  }
});

test("every page is in the table of contents, once", () => {
  const listed = linkedPages(pageText(INDEX_PATH));
  const own = PAGE_PATHS.filter((path) => path.startsWith("src/docs/") && path !== INDEX_PATH && path !== SKILL_PATH);
  expect(own.filter((path) => !listed.includes(path))).toEqual([]);
  expect(listed.filter((path, i) => !PAGE_PATHS.includes(path) || listed.indexOf(path) !== i)).toEqual([]);
});

for (const path of GENERATED_PAGES) {
  test(`what is generated in ${path} is current: scripts/test --fix writes it`, () => {
    const page = pageText(path);
    expect(page).toContain("<!-- generated: ");
    expect(unpadded(page)).toBe(unpadded(withGeneratedParts(page)));
  });
}

test("a page for contributors names no file that does not exist", () => {
  const named = PAGES.filter(({ path }) => path.startsWith("src/docs/contribute/") && !path.endsWith("/map.md")).flatMap(({ path, text }) =>
    Array.from(text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|tsx|md|json|txt))`/g), ([, file = ""]) => ({ path, file })),
  );
  const isThere = (file: string) => [file, `src/${file}`, `test/${file}`].some((path) => existsSync(join(ROOT, path)));
  expect(named.filter(({ file }) => !/CONCEPT|NAME/.test(file) && !isThere(file))).toEqual([]);
  expect(named.length).toBeGreaterThan(50);
});

test("the changelog has its entries under five headings, and each in a few lines", () => {
  const changelog = pageText("CHANGELOG.md");
  const headings = Array.from(changelog.matchAll(/^### (.+)$/gm), ([, heading = ""]) => heading);
  expect(headings.filter((heading) => !["Added", "Changed", "Fixed", "Security", "Upgrade"].includes(heading))).toEqual([]);
  expect(
    changelog.split(/^(?=- )/m).filter((entry) => entry.startsWith("- ") && (entry.split(/\n(?=\n|#|$)/, 1)[0] ?? "").length > 400),
  ).toEqual([]);
});
