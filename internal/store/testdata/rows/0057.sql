SELECT 1; -- a column alone
