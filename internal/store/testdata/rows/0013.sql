UPDATE document_snapshots SET data = 'y' WHERE workflow_id = 'w'; -- the migration made it
