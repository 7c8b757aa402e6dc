package order

// Currencies is the list behind ValidCurrency.
const Currencies = currencies
