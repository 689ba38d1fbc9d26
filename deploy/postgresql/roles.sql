-- Once, on the primary: psql --set application_password=… --file roles.sql
CREATE ROLE flagadmin LOGIN PASSWORD :'application_password';
CREATE DATABASE flagadmin OWNER flagadmin;
