UPDATE share_invites SET allow_results = TRUE;
UPDATE result_links SET invite_id = 'i';
