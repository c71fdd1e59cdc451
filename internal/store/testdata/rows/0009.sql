INSERT INTO readings (id, subject, reader, current, doi, title, status, charged_to, charged_address, charged_day, created_at) VALUES ('rd', 'doi 10.1000/1', 'r', TRUE, '10.1000/1', '', 'queued', 't', '', 1, 1);
INSERT INTO analyses (id, reading_id, owner, team_id, doi, title, created_at) VALUES ('an', 'rd', 't', 't', '10.1000/1', '', 1);
INSERT INTO chat_quota (day, who, used) VALUES (1, 'u', 1);
INSERT INTO chat_use (team_id, day, requests, prompt_tokens, completion_tokens) VALUES ('t', 1, 1, 1, 1);
