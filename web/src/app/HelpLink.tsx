import { useRouterState } from "@tanstack/react-router";
import { CircleQuestionMark } from "lucide-react";
import { buttonClass } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { Tooltip } from "../ui/Tooltip.tsx";
import { helpFor } from "./help.ts";

/** HelpLink leads to what the documentation says of the page that is shown. */
export function HelpLink() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <Tooltip text="Help on this page">
      <a
        href={helpFor(path)}
        aria-label="Help on this page"
        className={classes(buttonClass("quiet", "sm"), "w-8 shrink-0 px-0!")}
      >
        <CircleQuestionMark className="size-4" aria-hidden />
      </a>
    </Tooltip>
  );
}
