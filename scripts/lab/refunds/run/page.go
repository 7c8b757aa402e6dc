package main

func writePage(o options, all, rules []row) error { return nil }
