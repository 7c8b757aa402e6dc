# The variables of one environment. Copy this to NAME.tfvars. Never put the Stripe key
# here.
environment = "example"
region      = "eu-west-1"
