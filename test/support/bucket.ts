/**
 * Servers of buckets: one that is used as such, and one in this process that does what a test wants.
 *
 * @module
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BucketAccess } from "../../src/lib/s3.ts";
import type { Part } from "./platform.ts";
import { scratchDirectory, until } from "./process.ts";

const VERSION = "2.6.0";
const TOOLS = join(dirname(dirname(import.meta.dir)), ".tools");
const JAR = join(TOOLS, `s3proxy-${VERSION}-jar-with-dependencies.jar`);

let problem: string | undefined;
let isAsked = false;

/** S3Proxy, from Maven; installed with the first question. */
export const S3PROXY: Part = {
  name: "S3Proxy",
  problem() {
    if (!isAsked) problem = install();
    isAsked = true;
    return problem;
  },
};

function install(): string | undefined {
  if (Bun.which("java") === null || Bun.which("mvn") === null) return "there is no Java with Maven";
  if (existsSync(JAR)) return undefined;
  const artifact = `-Dartifact=org.gaul:s3proxy:${VERSION}:jar:jar-with-dependencies`;
  Bun.spawnSync(["mvn", "-q", "-B", "dependency:copy", artifact, `-DoutputDirectory=${TOOLS}`], { stdout: "ignore", stderr: "ignore" });
  return existsSync(JAR) ? undefined : "Maven does not install it";
}

export const ACCESS = { accessKeyId: "cairn", secretAccessKey: "a-secret-of-tests" };

export interface BucketServer {
  readonly access: BucketAccess;
  /** Directory with the buckets. */
  readonly directory: string;
}

/** Starts S3Proxy over a directory with the bucket `backups`. */
export async function startS3Proxy(): Promise<BucketServer & AsyncDisposable> {
  const scratch = scratchDirectory();
  mkdirSync(scratch.at("data/backups"), { recursive: true });
  const settings = {
    "s3proxy.authorization": "aws-v2-or-v4",
    "s3proxy.endpoint": "http://127.0.0.1:0",
    "s3proxy.identity": ACCESS.accessKeyId,
    "s3proxy.credential": ACCESS.secretAccessKey,
    "jclouds.provider": "filesystem",
    "jclouds.filesystem.basedir": scratch.at("data"),
  };
  writeFileSync(
    scratch.at("settings"),
    Object.entries(settings)
      .map((pair) => `${pair.join("=")}\n`)
      .join(""),
  );
  const child = Bun.spawn(["java", "-XX:TieredStopAtLevel=1", "-jar", JAR, "--properties", scratch.at("settings")], {
    stdout: "pipe",
    stderr: "ignore",
  });
  let said = "";
  void (async () => {
    const decoder = new TextDecoder();
    for await (const piece of child.stdout) said += decoder.decode(piece, { stream: true });
  })();
  const port = await until("S3Proxy to listen", () => Promise.resolve(/\{127\.0\.0\.1:(\d+)\}/.exec(said)?.[1]));
  return {
    access: { ...ACCESS, endpoint: `http://127.0.0.1:${port}` },
    directory: scratch.at("data"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      scratch[Symbol.dispose]();
    },
  };
}

interface MadeBucket extends Disposable {
  readonly access: BucketAccess;
  readonly objects: Map<string, Uint8Array>;
  /** False: what is written is acknowledged, and lost. */
  keeps: boolean;
  /** Method that is refused. */
  refused: string | undefined;
  /** Answers in the place of the bucket. */
  answer: () => Promise<Response> | undefined;
}

/** A bucket in memory, of objects that fit one request; it checks nobody's access. */
export function startBucket(): MadeBucket {
  const bucket = {
    objects: new Map<string, Uint8Array>(),
    keeps: true,
    refused: undefined as string | undefined,
    answer: (): Promise<Response> | undefined => undefined,
    access: ACCESS as BucketAccess,
    [Symbol.dispose]: () => void server.stop(true),
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const key = decodeURIComponent(new URL(request.url).pathname).replace(/^\/[^/]+\/?/, "");
      return (await bucket.answer()) ?? answerOf(bucket, key, request);
    },
  });
  bucket.access = { ...ACCESS, endpoint: `http://127.0.0.1:${server.port}` };
  return bucket;
}

async function answerOf({ objects, keeps, refused }: MadeBucket, key: string, request: Request): Promise<Response> {
  const { searchParams } = new URL(request.url);
  if (request.method === "GET" && key === "") return xml(listing(objects, searchParams));
  if (request.method === refused) return refusedBy("AccessDenied", "Access Denied");
  if (request.method === "PUT" && keeps) objects.set(key, await request.bytes());
  if (request.method === "DELETE") objects.delete(key);
  const found = objects.get(key);
  if (request.method === "DELETE") return new Response(null, { status: 204 });
  if (request.method === "PUT") return new Response(null, { headers: { ETag: '"1"' } });
  if (found === undefined) return refusedBy("NoSuchKey", "The specified key does not exist.", 404);
  const from = Number(/^bytes=(\d+)-/.exec(request.headers.get("Range") ?? "")?.[1] ?? 0);
  return new Response(request.method === "HEAD" ? null : found.slice(from), {
    status: from === 0 ? 200 : 206,
    headers: { "Content-Length": String(found.length - from), ETag: '"1"' },
  });
}

/** A page: `max-keys` keys, or what lies below them as common prefixes, from where the token says. */
function listing(objects: Map<string, Uint8Array>, asked: URLSearchParams): string {
  const prefix = asked.get("prefix") ?? "";
  const entries = new Map<string, string>();
  for (const [key, { length }] of objects) {
    if (!key.startsWith(prefix)) continue;
    const [name = "", ...below] = key.slice(prefix.length).split("/");
    const isBelow = below.length > 0;
    const entry = `<Contents><Key>${key}</Key><Size>${length}</Size><ETag>"1"</ETag></Contents>`;
    entries.set(isBelow ? `${name}/` : name, isBelow ? `<CommonPrefixes><Prefix>${prefix}${name}/</Prefix></CommonPrefixes>` : entry);
  }
  const from = Number(asked.get("continuation-token") ?? 0);
  const to = from + Number(asked.get("max-keys") ?? 1_000);
  const sorted = [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
  const next = to < sorted.length ? `<NextContinuationToken>${to}</NextContinuationToken>` : "";
  return `<ListBucketResult><Name>backups</Name><Prefix>${prefix}</Prefix><IsTruncated>${next !== ""}</IsTruncated>${next}${sorted.slice(from, to).join("")}</ListBucketResult>`;
}

/** Answers as S3 refuses. */
export function refusedBy(code: string, message: string, status = 403): Response {
  return xml(`<Error><Code>${code}</Code><Message>${message}</Message></Error>`, status);
}

function xml(body: string, status = 200): Response {
  return new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, { status, headers: { "Content-Type": "application/xml" } });
}
