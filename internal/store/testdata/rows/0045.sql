UPDATE runs SET executor = 'cluster';
UPDATE workers SET executor = 'cluster', kind = 'slurm', scope = 'slurm:/shared';
