/**
 * The certificate of the server's domains: kept, ordered when it is due, and handed to the listener.
 *
 * The kept certificate says what is due, so that a start with a valid one asks nobody. Of several servers that share a store one orders
 * (a lease), and all look at what is kept. An order that fails changes nothing: the old certificate stays in use, also beyond its end.
 *
 * @module
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/duration.ts";
import { messageOf } from "../lib/errors.ts";
import { toJson } from "../lib/json.ts";
import { describeError, type Log } from "../lib/log.ts";
import { systemResolve, type Network } from "../lib/outbound.ts";
import { toIso } from "../lib/time.ts";
import type { CertificateStore, CertificateText } from "../storage/certificate-store.ts";
import type { Leases } from "../storage/leases.ts";
import type { Task } from "../tasks/task.ts";
import { AcmeError, objectIn } from "./acme.ts";
import { certificateOf, isOverdue, renewalOf, type Certificate } from "./certificate.ts";
import { ChallengeAnswers } from "./challenge-answers.ts";
import { orderCertificate } from "./order.ts";

/** Pauses after failures in a row: four attempts in the first hour. Let's Encrypt takes five failed ones of a name in an hour. */
const PAUSES_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 6 * HOUR_MS];
/** A later attempt was noted by a clock that was ahead. */
const PAUSE_MS_MAX = 7 * DAY_MS;
/** Other servers look for what one of them has got. */
const LOOK_MS = MINUTE_MS;
const FIRST_LOOK_MS = SECOND_MS;
const LEASE = "certificate";

/** Names and authority of the certificate. */
export interface CertificateOptions {
  readonly domains: readonly string[];
  /** The address of the authority's directory. */
  readonly directory: URL;
  /** Network to reach it by; a test has its own. */
  readonly network?: Partial<Network>;
}

interface CertificatesDeps {
  readonly certificateStore: CertificateStore;
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
}

/** Outcome of the last attempts. */
interface Attempts {
  readonly failures: number;
  readonly error: string | null;
  readonly retryAt: number;
}

const NO_ATTEMPTS: Attempts = { failures: 0, error: null, retryAt: 0 };

/** Standing of the certificate, as `/v1/stats` shows it. */
export interface CertificateStatus {
  readonly domains: readonly string[];
  readonly expires_at: string | null;
  readonly renews_at: string | null;
  readonly overdue: boolean;
  readonly error: string | null;
  readonly failures: number;
}

export class Certificates {
  readonly answers: ChallengeAnswers;
  readonly #deps: CertificatesDeps & CertificateOptions;
  readonly #network: Network;
  readonly #first = Promise.withResolvers<void>();
  readonly #closing = new AbortController();
  #current: Certificate | undefined;
  #attempts = NO_ATTEMPTS;
  /** Attempts that a full disk keeps from being written, and that count all the same. */
  #unwritten: Attempts | undefined;
  #install: (certificate: Certificate) => void = () => undefined;

  constructor(deps: CertificatesDeps & CertificateOptions) {
    this.#deps = deps;
    this.answers = new ChallengeAnswers(deps.certificateStore.answers);
    this.#network = { resolve: systemResolve, isAllowed: () => true, ...deps.network };
    deps.leases.join(LEASE);
  }

  /** @returns undefined for a server that has no certificate to get */
  static async open(options: CertificateOptions | undefined, deps: CertificatesDeps): Promise<Certificates | undefined> {
    if (options === undefined) return undefined;
    const certificates = new Certificates({ ...deps, ...options });
    await certificates.#look();
    return certificates;
  }

  /** The one in use; undefined until there is one. */
  get current(): Certificate | undefined {
    return this.#current;
  }

  /** Resolves once there is one. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  /** Has every later certificate handed to the listener. */
  onRenewal(install: (certificate: Certificate) => void): void {
    this.#install = install;
  }

  task(): Task {
    return { name: "certificate", run: () => this.#run() };
  }

  status(): CertificateStatus {
    const current = this.#current;
    return {
      domains: this.#deps.domains,
      expires_at: current === undefined ? null : toIso(current.until),
      renews_at: current === undefined ? null : toIso(Math.max(renewalOf(current), this.#attempts.retryAt)),
      overdue: current !== undefined && isOverdue(current, this.#now()),
      error: this.#attempts.error,
      failures: this.#attempts.failures,
    };
  }

  /** Ends an order that is under way. */
  close(): void {
    this.#closing.abort();
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  /** @returns milliseconds until something can be due */
  async #run(): Promise<number> {
    const { certificateStore, leases } = this.#deps;
    await this.#look();
    const lookMs = certificateStore.answers === undefined ? HOUR_MS : this.#current === undefined ? FIRST_LOOK_MS : LOOK_MS;
    const lease = leases.find(LEASE);
    const dueAt = Math.max(this.#current === undefined ? 0 : renewalOf(this.#current), this.#retryAt());
    if (lease === undefined || dueAt > this.#now()) return Math.min(lookMs, Math.max(dueAt - this.#now(), SECOND_MS));
    const signal = AbortSignal.any([this.#closing.signal, lease.signal]);
    try {
      await this.#order(signal);
    } catch (error) {
      if (!signal.aborted) await this.#fail(error);
      return SECOND_MS;
    }
    await this.#look();
    return SECOND_MS;
  }

  async #order(signal: AbortSignal): Promise<void> {
    const { domains, directory, clock, log } = this.#deps;
    log.info("ordering a certificate", { domains: domains.join(", "), directory: directory.href });
    // Nobody is asked for what cannot be kept.
    await this.#writeAttempts(this.#attempts);
    const account = await this.#account();
    const certificate = await orderCertificate({
      directory,
      account,
      names: domains,
      answers: this.answers,
      network: this.#network,
      clock,
      signal,
    });
    if (renewalOf(certificate) <= this.#now())
      throw new AcmeError(`The new certificate is to be renewed already: it ends at ${toIso(certificate.until)}. Is the clock right?`);
    await this.#write("certificate", { chain: certificate.chain, key: certificate.key });
    this.#unwritten = undefined;
    await this.#writeAttempts(NO_ATTEMPTS);
  }

  async #fail(error: unknown): Promise<void> {
    const { log, domains } = this.#deps;
    const failures = this.#attempts.failures + 1;
    const pauseMs = PAUSES_MS[Math.min(failures, PAUSES_MS.length) - 1] as number;
    const wantedMs = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0;
    const retryAt = this.#now() + Math.min(Math.max(pauseMs, wantedMs), PAUSE_MS_MAX);
    const reason = error instanceof AcmeError ? error.message : describeError(error);
    const { overdue, expires_at } = this.status();
    const fields = { domains: domains.join(", "), reason, failures, next: toIso(retryAt), expires: expires_at };
    if (overdue || expires_at === null) log.error("could not get a certificate", fields);
    else log.warn("could not renew the certificate", fields);
    this.#attempts = this.#unwritten = { failures, error: reason, retryAt };
    await this.#writeAttempts(this.#attempts);
    this.#unwritten = undefined;
  }

  /** Takes what is kept: another server may have got it. */
  async #look(): Promise<void> {
    const { domains } = this.#deps;
    const { failures, error, retryAt } = await this.#read("attempts");
    const isFailure = typeof failures === "number" && typeof error === "string" && typeof retryAt === "number";
    this.#attempts = this.#unwritten ?? (isFailure ? { failures, error, retryAt } : NO_ATTEMPTS);
    const { chain, key } = await this.#read("certificate");
    if (typeof chain !== "string" || typeof key !== "string" || chain === this.#current?.chain) return;
    let kept: Certificate;
    try {
      kept = certificateOf(chain, key, domains);
    } catch (problem) {
      this.#deps.log.warn("the certificate that is kept cannot be used", { reason: messageOf(problem) });
      return;
    }
    this.#use(kept);
  }

  #use(certificate: Certificate): void {
    this.#install(certificate);
    this.#current = certificate;
    this.#deps.log.info("using a certificate", {
      domains: this.#deps.domains.join(", "),
      expires: toIso(certificate.until),
      renewal: toIso(renewalOf(certificate)),
    });
    this.#first.resolve();
  }

  #retryAt(): number {
    const { retryAt } = this.#attempts;
    return retryAt - this.#now() > PAUSE_MS_MAX ? 0 : retryAt;
  }

  /** The key of the account, made once for each authority. */
  async #account(): Promise<KeyObject> {
    const { key } = await this.#read("account");
    if (typeof key === "string") return createPrivateKey(key);
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await this.#write("account", { key: privateKey.export({ type: "pkcs8", format: "pem" }) });
    return privateKey;
  }

  #writeAttempts(attempts: Attempts): Promise<void> {
    return this.#write("attempts", { ...attempts });
  }

  /** Members of a text that is kept for these domains and this authority; none of one for others. */
  async #read(name: CertificateText): Promise<Readonly<Record<string, unknown>>> {
    const kept = objectIn((await this.#deps.certificateStore.read(name)) ?? "");
    const isOurs =
      kept["directory"] === this.#deps.directory.href && (name === "account" || sameNames(kept["domains"], this.#deps.domains));
    return isOurs ? kept : {};
  }

  #write(name: CertificateText, members: object): Promise<void> {
    const { certificateStore, directory, domains } = this.#deps;
    return certificateStore.write(name, toJson({ directory: directory.href, domains, ...members }));
  }
}

function sameNames(kept: unknown, domains: readonly string[]): boolean {
  return Array.isArray(kept) && kept.length === domains.length && domains.every((name) => kept.includes(name));
}
