// Package browser tests the live page of the local system in a real browser: it starts
// the compiled `local up`, opens its page in headless Chromium, presses what a visitor
// presses, and compares the page with the table and with Stripe's ledger. `make browser`
// runs the tests, and `make screenshots` keeps the pictures that one of them takes.
//
// It knows the page by the data attributes of its elements alone, and the system by its
// public endpoints.
package browser
