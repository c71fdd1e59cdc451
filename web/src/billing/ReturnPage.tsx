import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { CircleCheck, LoaderCircle, X } from "lucide-react";
import { useEffect, useState } from "react";
import { apiOf } from "../api/team.ts";
import { Page } from "../page/Page.tsx";
import { buttonClass } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { credits } from "../ui/format.ts";
import { creditsQuery, pageOfUsage } from "./queries.ts";

const recently = 15 * 60_000;

/** ReturnPage is where a checkout leads back to: it waits until the payment has been confirmed to the server. */
export function ReturnPage() {
  const { topup } = useSearch({ from: "/inside/billing/return" });
  const back = (
    <Link to="/billing" className={buttonClass("primary")}>
      Go to billing
    </Link>
  );
  return (
    <Page title="Top-up">
      {topup === "done" ? (
        <Waiting back={back} />
      ) : (
        <Empty icon={<X />} title="Payment cancelled" actions={back}>
          You left the checkout before paying. You were not charged.
        </Empty>
      )}
    </Page>
  );
}

function Waiting({ back }: { back: React.ReactNode }) {
  const [long, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), 30_000);
    return () => clearTimeout(timer);
  }, []);
  const booked = useQuery({
    queryKey: ["usage", "latest-topup"],
    queryFn: async ({ client }) => {
      const { rows } = await pageOfUsage(apiOf(client), 20);
      return (
        rows.find((event) => event.type === "topup" && Date.now() - Date.parse(event.createdAt) < recently) ?? null
      );
    },
    refetchInterval: (query) => (query.state.data ? false : 2000),
  });
  const balance = useQuery({ ...creditsQuery, enabled: Boolean(booked.data), staleTime: 0 });
  if (booked.data) {
    return (
      <Empty icon={<CircleCheck />} title={`${credits(booked.data.credits)} credits added`} actions={back}>
        {balance.data ? `Your team now has ${credits(balance.data.remaining)} credits. ` : ""}The invoice is on the
        billing page.
      </Empty>
    );
  }
  return (
    <Empty
      icon={<LoaderCircle className="animate-spin" />}
      title="Confirming your payment"
      {...(long && { actions: back })}
    >
      {long
        ? "This is taking longer than usual. You can leave this page: the credits appear once the payment is confirmed."
        : "This usually takes a few seconds."}
    </Empty>
  );
}
