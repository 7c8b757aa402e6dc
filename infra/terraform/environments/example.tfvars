# The variables of one environment. Copy this to NAME.tfvars. The Stripe key does not belong here.
environment = "example"
region      = "eu-west-1"
