/**
 * Opens any record by its id, wherever it is shown: for ids from logs and traces.
 *
 * @module
 */
import { useLocation, useRoute } from "preact-iso";
import { useEffect } from "preact/hooks";
import { api } from "../api.ts";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useQuery } from "../query.ts";

/** Where records of a kind are shown; undefined for an id of no kind that is shown anywhere. */
async function placeOf(id: string, signal: AbortSignal): Promise<string | undefined> {
  const [prefix] = id.split("_", 1);
  const escaped = encodeURIComponent(id);
  switch (prefix) {
    case "sess":
      return `sessions/${escaped}`;
    case "mem":
      return `sessions/${(await api.memory(id, signal)).session_id}#${escaped}`;
    case "trace":
      return `traces?id=${escaped}`;
    case "whk":
      return `webhooks/${escaped}`;
    case "key":
      return "keys";
    default:
      return undefined;
  }
}

export function Go() {
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
              Ids begin with <code>sess_</code>, <code>mem_</code>, <code>trace_</code>, <code>whk_</code> or <code>key_</code>; this one
              does not.
            </p>
          )
        }
      </Loaded>
    </Page>
  );
}
