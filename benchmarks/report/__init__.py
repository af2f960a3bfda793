"""Reports: tables and pages made from records."""
