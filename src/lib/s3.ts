/**
 * Objects in a bucket of a store that speaks S3, below a prefix: `s3://bucket/prefix`.
 *
 * A call that makes no progress for a while fails, so that nobody waits for a network that is gone. An object is there once all of it
 * is: nothing half is ever listed.
 *
 * @module
 */
import { S3Client, type S3File } from "bun";
import { systemClock } from "./clock.ts";
import { SECOND_MS } from "./duration.ts";
import { messageOf } from "./errors.ts";

/** Access to buckets, as the variables of AWS's own tools name it. */
export interface BucketAccess {
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly sessionToken?: string | undefined;
  readonly region?: string | undefined;
  /** Address of a server that is not Amazon's. */
  readonly endpoint?: string | undefined;
}

export interface BucketPlace {
  readonly bucket: string;
  /** Without a slash at its ends; empty for the whole bucket. */
  readonly prefix: string;
}

export interface BucketObject {
  /** Name below the prefix. */
  readonly name: string;
  readonly bytes: number;
}

/** Problem of a bucket or of the way to it; the message is for the operator. */
export class BucketError extends Error {
  override readonly name = "BucketError";
}

export function isBucketUrl(place: string): boolean {
  return place.startsWith("s3://");
}

/** Syntax of `parseBucketUrl`, in words. */
export const BUCKET_URL_FORM = "s3:// with the name of a bucket and, where wanted, a prefix, such as s3://backups/cairn";

const BUCKET_URL = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/;
/** Longest key that S3 has, without the name of a backup. */
const PREFIX_LENGTH_MAX = 900;

/** Parses an address; undefined for any other text. */
export function parseBucketUrl(url: string): BucketPlace | undefined {
  const [, bucket, path = ""] = BUCKET_URL.exec(url) ?? [];
  const prefix = path.replace(/^\/+|\/+$/g, "");
  if (bucket === undefined || prefix.length > PREFIX_LENGTH_MAX || /[^\x21-\x7e]|\/\/|[?#\\]/.test(prefix)) return undefined;
  return { bucket, prefix };
}

/** Returns what is missing for any access; undefined where nothing is. */
export function accessProblem({ accessKeyId, secretAccessKey }: BucketAccess): string | undefined {
  if (accessKeyId && secretAccessKey) return undefined;
  return "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY give the access to the bucket, and are not both set";
}

const REGION_DEFAULT = "us-east-1";
const STALL_MS = 60 * SECOND_MS;
const LISTED_MAX = 1_000;
/** S3 has at most 10,000 parts of an object, of 5 MB at least. */
const PART_BYTES_MIN = 8 * 1024 * 1024;
const PARTS_MAX = 9_000;
const RETRIES = 3;

export class Bucket {
  readonly #client: S3Client;
  readonly #place: BucketPlace;
  readonly #stallMs: number;
  /** Ends the steps under way. One promise for all of them would hold every step that has ended, too. */
  readonly #rejecters = new Set<(error: BucketError) => void>();
  #stopped: BucketError | undefined;

  /** @throws {BucketError} without access */
  constructor(place: BucketPlace, access: BucketAccess, stallMs = STALL_MS) {
    const problem = accessProblem(access);
    if (problem !== undefined) throw new BucketError(`${problem}.`);
    this.#client = new S3Client({ ...given(access), region: access.region || REGION_DEFAULT, bucket: place.bucket, retry: RETRIES });
    this.#place = place;
    this.#stallMs = stallMs;
  }

  /** Address of an object, or of the prefix. */
  url(name = ""): string {
    return `s3://${this.#place.bucket}/${this.#key(name)}`;
  }

  /** Returns all objects below the prefix, but for those further below. */
  async list(): Promise<BucketObject[]> {
    const { prefix } = this.#place;
    const start = prefix === "" ? "" : `${prefix}/`;
    const found: BucketObject[] = [];
    let continuationToken: string | undefined;
    do {
      const from = continuationToken === undefined ? {} : { continuationToken };
      const page = await this.#timed(this.#client.list({ prefix: start, delimiter: "/", maxKeys: LISTED_MAX, ...from }));
      found.push(...(page.contents ?? []).map(({ key, size }) => ({ name: key.slice(start.length), bytes: size ?? 0 })));
      // A page may have nothing but prefixes, and another follow it.
      continuationToken = page.isTruncated === true ? page.nextContinuationToken : undefined;
    } while (continuationToken !== undefined);
    return found;
  }

  /** Writes a file as an object, in parts. */
  async put(name: string, path: string): Promise<void> {
    const file = Bun.file(path);
    const partSize = Math.max(PART_BYTES_MIN, Math.ceil(file.size / PARTS_MAX));
    const writer = this.#file(name).writer({ partSize, queueSize: 1, retry: RETRIES });
    try {
      for await (const piece of file.stream()) {
        await this.#timed(Promise.resolve(writer.write(piece)));
        await this.#timed(Promise.resolve(writer.flush()));
      }
      await this.#timed(Promise.resolve(writer.end()));
    } catch (error) {
      // Nobody waits for what is left of it.
      void Promise.resolve(writer.end(new Error("given up"))).catch(() => undefined);
      throw error;
    }
  }

  /** Bytes of an object from an offset on, as they come. */
  async *read(name: string, from = 0): AsyncGenerator<Uint8Array> {
    const file = this.#file(name);
    const reader = (from === 0 ? file : file.slice(from)).stream().getReader();
    try {
      for (;;) {
        const { done, value } = await this.#timed(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      void reader.cancel().catch(() => undefined);
    }
  }

  async size(name: string): Promise<number> {
    return (await this.#timed(this.#client.stat(this.#key(name)))).size;
  }

  async delete(name: string): Promise<void> {
    await this.#timed(this.#client.delete(this.#key(name)));
  }

  /** Ends all that is under way, and all that would begin. */
  close(): void {
    this.#stopped = new BucketError("It was given up: the server is stopping, or uses another bucket.");
    for (const reject of this.#rejecters) reject(this.#stopped);
  }

  #key(name: string): string {
    return [this.#place.prefix, name].filter((part) => part !== "").join("/");
  }

  #file(name: string): S3File {
    return this.#client.file(this.#key(name));
  }

  /** @throws {BucketError} for what the server answers, and when nothing happens for too long */
  async #timed<Value>(step: Promise<Value>): Promise<Value> {
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const cancel = systemClock.timer(this.#stallMs, () =>
      reject(new BucketError(`Nothing has come of it for ${this.#stallMs / SECOND_MS} s.`)),
    );
    this.#rejecters.add(reject);
    if (this.#stopped !== undefined) reject(this.#stopped);
    try {
      return await Promise.race([step, ended]);
    } catch (error) {
      throw error instanceof BucketError ? error : new BucketError(problemOf(error), { cause: error });
    } finally {
      this.#rejecters.delete(reject);
      cancel();
    }
  }
}

function given(access: BucketAccess): Record<string, string> {
  return Object.fromEntries(Object.entries(access).filter((entry): entry is [string, string] => Boolean(entry[1])));
}

const UNREACHED: Readonly<Record<string, string>> = {
  ConnectionRefused: "refuses connections",
  ConnectionClosed: "has closed the connection",
  DNSResolveFailed: "is not known by its name",
};
const MESSAGE_LENGTH_MAX = 300;

/** Code of S3, which its manuals name, and what the server says of it. */
function problemOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return messageOf(error);
  const unreached = UNREACHED[code];
  if (unreached !== undefined) return `The server of the bucket ${unreached}.`;
  return `${code}: ${messageOf(error)}`.slice(0, MESSAGE_LENGTH_MAX);
}
