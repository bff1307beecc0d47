/**
 * Bounds the attempts in flight, fairly between webhooks.
 *
 * Every webhook has one place of its own, so that none waits because others are slow. Further ones, up to 8 in all, come
 * out of a common pool, half of which failing webhooks may take. Knows no store and no network.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";

const POOL_MAX = 32;
const POOL_OF_FAILING_MAX = 16;

interface InFlight {
  readonly deliveries: Set<BareId>;
  isFailing: boolean;
  /** The number of its last attempt, counted over all webhooks. */
  lastServedAt: number;
}

export class DeliverySlots {
  readonly #webhooks = new Map<BareId, InFlight>();
  #tick = 0;

  /** The deliveries that are in flight now. */
  inFlight(): Set<BareId> {
    return new Set(Array.from(this.#webhooks.values(), ({ deliveries }) => [...deliveries]).flat());
  }

  /** Checks whether another delivery of the webhook may be attempted now. */
  isFree(webhook: BareId, isFailing: boolean): boolean {
    const taken = this.#webhooks.get(webhook)?.deliveries.size ?? 0;
    if (taken === 0) return true;
    if (taken >= LIMITS.webhookSessionsAtOnceMax) return false;
    return this.#poolTaken() < POOL_MAX && (!isFailing || this.#poolTaken((other) => other.isFailing) < POOL_OF_FAILING_MAX);
  }

  take(webhook: BareId, delivery: BareId, isFailing: boolean): void {
    const inFlight = this.#webhooks.get(webhook) ?? { deliveries: new Set(), isFailing, lastServedAt: 0 };
    inFlight.deliveries.add(delivery);
    inFlight.isFailing = isFailing;
    inFlight.lastServedAt = ++this.#tick;
    this.#webhooks.set(webhook, inFlight);
  }

  release(webhook: BareId, delivery: BareId): void {
    this.#webhooks.get(webhook)?.deliveries.delete(delivery);
  }

  /** Orders webhooks by how long ago they were served, and forgets those not given. */
  inTurn<Webhook extends { key: BareId }>(webhooks: readonly Webhook[]): Webhook[] {
    const keys = new Set(webhooks.map(({ key }) => key));
    for (const [key, { deliveries }] of this.#webhooks) if (deliveries.size === 0 && !keys.has(key)) this.#webhooks.delete(key);
    const servedAt = ({ key }: Webhook) => this.#webhooks.get(key)?.lastServedAt ?? 0;
    return webhooks.toSorted((a, b) => servedAt(a) - servedAt(b));
  }

  /** Places of the pool taken by webhooks: all but the first of each. */
  #poolTaken(isCounted: (inFlight: InFlight) => boolean = () => true): number {
    let taken = 0;
    for (const inFlight of this.#webhooks.values()) if (isCounted(inFlight)) taken += Math.max(0, inFlight.deliveries.size - 1);
    return taken;
  }
}
