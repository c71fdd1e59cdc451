INSERT INTO failed_pdfs (day, who, failed) VALUES (1, 't', 1);
