UPDATE workflow_inputs SET key = key || 'z'; -- the migration has found one
