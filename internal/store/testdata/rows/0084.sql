INSERT INTO notices (one, id, text, level, until, created_at) VALUES (1, 'notice_1', 'Maintenance on Friday', 'warning', 1785542400000000, 1785538800000000);
INSERT INTO maintenance (one, message, since) VALUES (1, 'Back at noon', 1785538800000000);
