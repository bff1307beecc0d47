/**
 * Opens any record by its id, wherever it is shown, and a user by name: for ids from logs and traces.
 *
 * @module
 */
import { useLocation, useRoute } from "preact-iso";
import { useEffect } from "preact/hooks";
import { boundTo } from "../access.ts";
import { api, CairnError, type List, type Memory, type Trace, type Webhook } from "../api.ts";
import { bare, partitionOf, idAt, timeOf } from "../ids.ts";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useQuery } from "../query.ts";

/** Screen of the records of a kind; undefined for an id of nothing that is shown anywhere. */
async function placeOf(id: string, signal: AbortSignal): Promise<string | undefined> {
  const [, prefix] = /^([a-z]+)_[0-9A-Za-z]{12}$/.exec(id) ?? [];
  switch (prefix) {
    case "sess":
      return `sessions/${id}`;
    case "mem":
      return ofMemory(await api.memory(id, signal), signal);
    case "turn":
      return ofTurn(id, signal);
    case "ret":
      return `sessions/${(await api.retrieval(id, signal)).session_id}#${id}`;
    case "dlv":
      return ofWebhooks(id, signal, async (webhook) => ((await isFound(api.delivery(webhook, id, signal))) ? id : undefined));
    case "evt":
      return ofWebhooks(id, signal, (webhook) => deliveryOf(webhook, id, signal));
    case "trace":
      return `traces?id=${id}`;
    case "whk":
      return `webhooks/${id}`;
    case "bkp":
      await api.backup(id, signal);
      return `backups?id=${id}`;
    case "key":
      return `keys?id=${id}`;
    default:
      return ofUser(id, signal);
  }
}

/** Names of users have no form of their own: the list is asked, since a browser complains of every answer that is 404. */
async function ofUser(id: string, signal: AbortSignal): Promise<string | undefined> {
  if (boundTo(await api.me(signal)) !== null) return undefined;
  const { data } = await api.named("users", { prefix: id }, signal);
  return data.some((user) => user.id === id) ? `users/${encodeURIComponent(id)}` : undefined;
}

/** A memory can outlive its session, and be without one. */
async function ofMemory({ id, session_id: session, user_id, agent_id }: Memory, signal: AbortSignal): Promise<string> {
  if (session === null) return `memories?${new URLSearchParams(user_id === null ? { agent_id: agent_id ?? "" } : { user_id })}`;
  const isThere = await isFound(api.session(session, signal));
  return isThere ? `sessions/${session}#${id}` : `memories?session_id=${session}`;
}

/** A turn is kept with its session, which its trace names: the first one after it that was written at its home, together with it. */
async function ofTurn(id: string, signal: AbortSignal): Promise<string> {
  const isItsOwn = (trace: Trace) => bare(trace.id) > bare(id) && partitionOf(trace.id) === partitionOf(id);
  const query = { action: "turn.added", starting_after: `trace_${idAt(timeOf(id) + WITHIN_MS)}` };
  const { data } = await api.traces(query, signal, TRACES_MAX);
  const session = data.findLast(isItsOwn)?.session_id;
  if (session === undefined || session === null || !(await isFound(api.turn(session, id, signal)))) {
    throw notFound(`No session with ${id} is known. A turn is found as long as its trace is kept.`);
  }
  return `sessions/${session}#${id}`;
}
const TRACES_MAX = 100;
const WITHIN_MS = 10;

/**
 * A delivery belongs to one of the webhooks, which are few, and an event to some of them, of which the first will do.
 *
 * @param find - gives the delivery of a webhook that is meant
 */
async function ofWebhooks(id: string, signal: AbortSignal, find: (webhook: string) => Promise<string | undefined>): Promise<string> {
  for (let after: string | null = null; ;) {
    const page: List<Webhook> = await api.webhooks({ starting_after: after }, signal);
    for (const { id: webhook } of page.data) {
      const delivery = await find(webhook);
      if (delivery !== undefined) return `webhooks/${webhook}?delivery=${delivery}`;
    }
    if (!page.has_more) throw notFound(`No webhook has ${id}.`);
    after = page.last_id;
  }
}

/** The deliveries of an event are made with it, right after it. */
async function deliveryOf(webhook: string, event: string, signal: AbortSignal): Promise<string | undefined> {
  const { data } = await api.deliveries(webhook, { starting_after: `dlv_${idAt(timeOf(event) + WITHIN_MS)}` }, signal);
  return data.find(({ event_id }) => event_id === event)?.id;
}

const notFound = (message: string) => new CairnError(message, { code: "resource_not_found", status: 404 });

async function isFound(asked: Promise<unknown>): Promise<boolean> {
  try {
    await asked;
    return true;
  } catch (error) {
    if (error instanceof CairnError && error.status === 404) return false;
    throw error;
  }
}

export function OpenById() {
  const { params } = useRoute();
  const { route } = useLocation();
  const id = params["id"] ?? "";
  const result = useQuery({
    queryKey: ["place", id],
    staleTime: Infinity,
    queryFn: async ({ signal }) => ({ place: await placeOf(id, signal) }),
  });
  const place = result.data?.place;
  useEffect(() => {
    if (place !== undefined) route(`/dashboard/${place}`, true);
  }, [place]);
  return (
    <Page title={id}>
      <Loaded result={result}>
        {({ place }) =>
          place === undefined && (
            <p>
              Ids of what is shown here begin with <code>sess_</code>, <code>turn_</code>, <code>mem_</code>, <code>trace_</code>,{" "}
              <code>ret_</code>, <code>whk_</code>, <code>dlv_</code>, <code>evt_</code>, <code>bkp_</code> or <code>key_</code>; this one
              does not, and no user has this name.
            </p>
          )
        }
      </Loaded>
    </Page>
  );
}
