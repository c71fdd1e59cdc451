import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { SizePicker, useAvailable } from "../runs/start/Estimate.tsx";
import { fieldsOf, fill, startText } from "../runs/start/form.ts";
import { RunForm } from "../runs/start/RunForm.tsx";
import { chosenSize, firstSize, type Size } from "../runs/start/sizes.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Checkbox, Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { toast } from "../ui/toast.ts";
import type { Workflow } from "../workflows/queries.ts";
import { createSchedule, schedulesQuery } from "./queries.ts";
import { hereZone, onClock, presets, zones } from "./times.ts";

/** ScheduleDialog asks when to run, and with what. */
export function ScheduleDialog({ workflow, onClose }: { workflow: Workflow; onClose: () => void }) {
  const api = useApi();
  const { id, definition } = workflow;
  const [preset, setPreset] = useState("0 6 * * 1-5");
  const [cron, setCron] = useState("");
  const [timeZone, setTimeZone] = useState(hereZone);
  const [overlap, setOverlap] = useState<"skip" | "queue">("skip");
  const [catchUp, setCatchUp] = useState(false);
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(fieldsOf(definition).map((field) => [field.name, startText(field, undefined)])),
  );
  const [files, setFiles] = useState<Record<string, string[]>>({});
  const [picked, setSize] = useState<Size | null>(null);
  const available = useAvailable();
  const size = picked ?? firstSize(available);
  const [tried, setTried] = useState(false);
  const filled = fill(definition, texts, files);
  const client = useQueryClient();
  const make = useMutation({
    mutationFn: () =>
      createSchedule(api, id, {
        cron: preset || cron,
        timeZone,
        overlap,
        catchUp,
        parameters: filled.parameters,
        inputs: filled.inputs,
        ...chosenSize(size),
      }),
    onSuccess: (made) => {
      const [first] = made.nextTimes;
      toast.ok(first ? `The first run is on ${onClock(first, made.timeZone)}` : "Schedule created");
      void client.invalidateQueries({ queryKey: schedulesQuery(id).queryKey });
      onClose();
    },
    meta: { shown: true },
  });
  return (
    <Dialog
      wide
      open
      onOpenChange={(open) => !open && onClose()}
      title="New schedule"
      description="Runs start at these times as you, as long as you can start runs in this team."
    >
      <Form
        className="space-y-4"
        onSubmit={() => {
          setTried(true);
          if (Object.keys(filled.errors).length === 0) make.mutate();
        }}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="When">
            <Choice options={presets} value={preset} onChange={setPreset} />
          </Field>
          <Field label="Time zone" hint="Daylight saving time is applied.">
            <Choice
              options={Object.fromEntries(zones().map((zone) => [zone, zone]))}
              value={timeZone}
              onChange={setTimeZone}
            />
          </Field>
        </div>
        {preset === "" && (
          <Field label="Cron" hint="Minute, hour, day of the month, month and day of the week, such as 30 7 * * 1-5.">
            <Input
              value={cron}
              onChange={(event) => setCron(event.target.value)}
              className="font-mono"
              autoComplete="off"
              spellCheck={false}
              required
              autoFocus
            />
          </Field>
        )}
        <Field label="If the previous run is still going">
          <Choice
            options={{ skip: "Skip this run", queue: "Start when it ends" }}
            value={overlap}
            onChange={setOverlap}
          />
        </Field>
        <Checkbox
          label="Run once to catch up after downtime"
          checked={catchUp}
          onChange={(event) => setCatchUp(event.target.checked)}
        />
        <RunForm
          definition={definition}
          texts={texts}
          files={files}
          errors={tried ? filled.errors : {}}
          onText={(field, text) => setTexts((old) => ({ ...old, [field]: text }))}
          onFiles={(input, change) => setFiles((old) => ({ ...old, [input]: change(old[input] ?? []) }))}
          guest={false}
        />
        <SizePicker size={size} available={available} onChange={setSize} />
        {make.error && <Problem error={make.error} />}
        <Button type="submit" look="primary" busy={make.isPending}>
          Create schedule
        </Button>
      </Form>
    </Dialog>
  );
}
