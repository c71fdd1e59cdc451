// The commands that make a pipeline on another machine report here.

export const engines = ["nextflow", "snakemake"] as const;
export type Engine = (typeof engines)[number];

export const engineNames: Record<Engine, string> = { nextflow: "Nextflow", snakemake: "Snakemake" };

/** Reporting is what the commands need to know. */
export interface Reporting {
  server: string;
  token: string;
  /** The server's own command that installs the plugin of Snakemake, with its hash. */
  install: string;
}

/** reportingLines are the commands that set up reporting and start the pipeline. */
export function reportingLines(engine: Engine, { server, token, install }: Reporting): string {
  if (engine === "nextflow") {
    // Without an address, -with-tower sends the token to the cloud of Nextflow's maker.
    return [`export TOWER_ACCESS_TOKEN=${token}`, `nextflow run main.nf -with-tower ${server}/api/nextflow`].join("\n");
  }
  return [
    install,
    `export MILLRACE_SERVER=${server}`,
    `export MILLRACE_TOKEN=${token}`,
    "snakemake --cores 4 --logger millrace",
  ].join("\n");
}
