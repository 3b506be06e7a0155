"""Make the jobs of schedules (S57).

fire            one pass: what is pending, then what is due
take            take the slots of schedules that are due
starting_point  begin behind those that other schedulers take
make_jobs       enqueue the jobs of slots, each alone
fan_out         make a job for each of many tenants, page by page
new_zone_data   move schedules to zone data that have changed
"""
