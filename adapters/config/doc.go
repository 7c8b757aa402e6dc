// Package config reads a program's environment, hides its secrets, and configures its
// HTTP and AWS clients. It refuses to know whether the program is a Lambda function,
// which services it calls and why.
package config
